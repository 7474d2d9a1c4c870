#pragma once

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <fstream>
#include <memory>
#include <string>
#include <utility>

namespace cumulus::testing {

inline std::string read_back(BIO* bio) {
  char* bytes = nullptr;
  const auto size = BIO_get_mem_data(bio, &bytes);
  return {bytes, static_cast<std::size_t>(size)};
}

inline void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

/// A certificate and its key, made for the test. One without issuer is an authority's, issued by itself.
class TestCertificate {
 public:
  /// `alternative` is as OpenSSL's configuration has it, "DNS:render-7"; empty: none.
  explicit TestCertificate(const std::string& common_name, const std::string& alternative = "",
                           const TestCertificate* issuer = nullptr, long days = 1)
      : key_(EVP_EC_gen("P-256"), &EVP_PKEY_free), certificate_(X509_new(), &X509_free) {
    X509* x509 = certificate_.get();
    static long serial = 0;
    X509_set_version(x509, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(x509), ++serial);
    X509_gmtime_adj(X509_getm_notBefore(x509), -3600 * 48);
    X509_gmtime_adj(X509_getm_notAfter(x509), 3600 * 24 * days);
    X509_set_pubkey(x509, key_.get());
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x509), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(common_name.c_str()), -1, -1, 0);
    const TestCertificate& signer = issuer != nullptr ? *issuer : *this;
    X509_set_issuer_name(x509, X509_get_subject_name(signer.certificate_.get()));
    if (issuer == nullptr) extend(NID_basic_constraints, "critical,CA:TRUE");
    if (!alternative.empty()) extend(NID_subject_alt_name, alternative.c_str());
    X509_sign(x509, signer.key_.get(), EVP_sha256());
  }

  std::string certificate() const {
    const Bio bio(BIO_new(BIO_s_mem()), &BIO_free);
    PEM_write_bio_X509(bio.get(), certificate_.get());
    return read_back(bio.get());
  }
  std::string key() const {
    const Bio bio(BIO_new(BIO_s_mem()), &BIO_free);
    PEM_write_bio_PrivateKey(bio.get(), key_.get(), nullptr, nullptr, 0, nullptr, nullptr);
    return read_back(bio.get());
  }

 private:
  using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;

  void extend(int kind, const char* value) {
    X509V3_CTX context;
    X509V3_set_ctx(&context, certificate_.get(), certificate_.get(), nullptr, nullptr, 0);
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value);
    X509_add_ext(certificate_.get(), extension, -1);
    X509_EXTENSION_free(extension);
  }

  std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key_;
  std::unique_ptr<X509, decltype(&X509_free)> certificate_;
};

}  // namespace cumulus::testing
