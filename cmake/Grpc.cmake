# The distribution's, unless CMAKE_PREFIX_PATH has another one: a newer one bounds more of what clients can do
# (docs/decisions/0022). tests/newer_grpc holds this.
find_package(gRPC REQUIRED)
message(STATUS "gRPC ${gRPC_VERSION}: ${gRPC_DIR}")
