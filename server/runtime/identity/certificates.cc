#include "server/runtime/identity/certificates.h"

#include <fcntl.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <system_error>
#include <utility>

#include "server/pipeline/text.h"
#include "server/runtime/identity/small_file.h"

namespace cumulus::server {
namespace {

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

Bio reader(const std::string& text) {
  return {BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), &BIO_free};
}

/// OpenSSL would ask for the password on the terminal.
int no_password(char* /*buffer*/, int /*size*/, int /*writing*/, void* /*data*/) { return -1; }

absl::Status wrong(const std::string& path, std::string_view what) {
  ERR_clear_error();
  return absl::InvalidArgumentError(concat("'", path, "' ", what));
}

absl::Status check_dates(const X509* certificate, const std::string& path) {
  if (X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0)
    return wrong(path, "holds a certificate that has expired; have a new one issued");
  if (X509_cmp_current_time(X509_get0_notBefore(certificate)) > 0)
    return wrong(path, "holds a certificate that is not valid yet; look at this machine's clock");
  return absl::OkStatus();
}

/// When the first of them ends.
absl::Time expiry_of(const std::string& certificates) {
  const Bio texts = reader(certificates);
  absl::Time first = absl::InfiniteFuture();
  while (true) {
    const Certificate next(PEM_read_bio_X509(texts.get(), nullptr, no_password, nullptr), &X509_free);
    if (next == nullptr) break;
    std::tm end{};
    if (ASN1_TIME_to_tm(X509_get0_notAfter(next.get()), &end) == 1)
      first = std::min(first, absl::FromTM(end, absl::UTCTimeZone()));
  }
  ERR_clear_error();  // that there is no further one
  return first;
}

absl::Status check_pair(const TlsFiles& files, const std::string& certificate_text,
                        const std::string& key_text) {
  const Bio certificates = reader(certificate_text);
  const Certificate certificate(PEM_read_bio_X509(certificates.get(), nullptr, no_password, nullptr),
                                &X509_free);
  if (certificate == nullptr)
    return wrong(files.certificate, "holds no certificate in PEM (-----BEGIN CERTIFICATE-----)");
  const Bio keys = reader(key_text);
  const Key key(PEM_read_bio_PrivateKey(keys.get(), nullptr, no_password, nullptr), &EVP_PKEY_free);
  if (key == nullptr)
    return wrong(files.key, "holds no key in PEM (-----BEGIN PRIVATE KEY-----) that needs no password");
  if (X509_check_private_key(certificate.get(), key.get()) != 1)
    return wrong(files.key, concat("is not the key of the certificate in '", files.certificate, "'"));
  return check_dates(certificate.get(), files.certificate);
}

absl::Status check_authorities(const std::string& path, const std::string& text) {
  const Bio certificates = reader(text);
  const Certificate first(PEM_read_bio_X509(certificates.get(), nullptr, no_password, nullptr), &X509_free);
  if (first == nullptr) return wrong(path, "holds no certificate in PEM (-----BEGIN CERTIFICATE-----)");
  return absl::OkStatus();
}

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

}  // namespace

PublishedText::PublishedText(const std::string& text) : file_(make(text)) {}

Descriptor PublishedText::make(const std::string& text) {
  Descriptor file(::memfd_create("cumulus-tls", MFD_CLOEXEC));
  if (!file) fail("memory for certificates");
  if (::write(file.number(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    fail("memory for certificates");
  // gRPC reads key and certificate one after the other, and again where the time in seconds, which must not
  // be 0, has changed meanwhile.
  const timespec time{1 + version_++, 0};
  const timespec times[2] = {time, time};
  if (::futimens(file.number(), times) != 0) fail("memory for certificates");
  return file;
}

void PublishedText::replace(const std::string& text) {
  const Descriptor fresh = make(text);
  if (::dup3(fresh.number(), file_.number(), O_CLOEXEC) < 0) fail("memory for certificates");
}

std::string PublishedText::path() const { return concat("/proc/self/fd/", file_.number()); }

absl::StatusOr<Certificates::Texts> Certificates::read(const TlsFiles& files) {
  const absl::StatusOr<std::string> certificate = read_small_file(files.certificate, Writers::kOwner);
  if (!certificate.ok()) return certificate.status();
  const absl::StatusOr<std::string> key = read_small_file(files.key, Writers::kOwner);
  if (!key.ok()) return key.status();
  if (const absl::Status pair = check_pair(files, *certificate, *key); !pair.ok()) return pair;
  Texts texts;
  texts.pair = concat(*key, "\n", *certificate);
  texts.expiry = expiry_of(*certificate);
  if (files.client_ca.empty()) return texts;
  const absl::StatusOr<std::string> authorities = read_small_file(files.client_ca, Writers::kOwner);
  if (!authorities.ok()) return authorities.status();
  if (const absl::Status checked = check_authorities(files.client_ca, *authorities); !checked.ok())
    return checked;
  texts.client_ca = *authorities;
  return texts;
}

absl::StatusOr<std::shared_ptr<Certificates>> Certificates::load(const TlsFiles& files) {
  const absl::StatusOr<Texts> texts = read(files);
  if (!texts.ok()) return absl::Status(texts.status().code(), concat("tls: ", texts.status().message()));
  return std::shared_ptr<Certificates>(new Certificates(files, *texts));
}

absl::Status Certificates::reload() {
  const absl::StatusOr<Texts> texts = read(files_);
  if (!texts.ok()) return texts.status();
  pair_.replace(texts->pair);
  client_ca_.replace(texts->client_ca);
  expiry_ = absl::ToUnixSeconds(texts->expiry);
  return absl::OkStatus();
}

std::shared_ptr<grpc::ServerCredentials> Certificates::credentials() const {
  constexpr unsigned kSeconds = 1;  // the shortest that gRPC takes
  const bool clients = !files_.client_ca.empty();
  // As key and certificate alike: each reader skips what it does not look for.
  auto provider = std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
      pair_.path(), pair_.path(), clients ? client_ca_.path() : std::string(), kSeconds);
  grpc::experimental::TlsServerCredentialsOptions options(std::move(provider));
  options.watch_identity_key_cert_pairs();
  if (clients) {
    options.watch_root_certs();
    // Whose certificate is none of theirs is turned away in the handshake; who shows none may have a token.
    options.set_cert_request_type(GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY);
  }
  return grpc::experimental::TlsServerCredentials(options);
}

}  // namespace cumulus::server
