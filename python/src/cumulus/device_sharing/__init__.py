"""GPU memory that client and server of one machine share, as cumulus/device_sharing.h has it: DEVICE regions of
proto/cumulus/v1/shared_memory.proto, mapped by the driver, which is loaded when it is first needed.
"""
