#pragma once

/// Keys of the metadata that clients send with calls which name a session.
namespace cumulus {

/// Session.instance: whose handles the call names, so that a server which is another answers
/// INSTANCE_RESTARTED.
inline constexpr char kInstanceKey[] = "cumulus-instance";
/// Session.name: what a proxy may route by.
inline constexpr char kSessionKey[] = "cumulus-session";

}  // namespace cumulus
