#pragma once

#include <arpa/inet.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <memory>

namespace cumulus::testing {

/// A connection to the server at `port` that comes from `address`.
inline std::shared_ptr<grpc::Channel> channel_from(const char* address, int port) {
  const int file = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in from{};
  from.sin_family = AF_INET;
  EXPECT_EQ(::inet_pton(AF_INET, address, &from.sin_addr), 1);
  EXPECT_EQ(::bind(file, reinterpret_cast<const sockaddr*>(&from), sizeof(from)), 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(port));
  EXPECT_EQ(::inet_pton(AF_INET, "127.0.0.1", &to.sin_addr), 1);
  EXPECT_EQ(::connect(file, reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0);
  return grpc::CreateInsecureChannelFromFd("cumulus", file);
}

}  // namespace cumulus::testing
