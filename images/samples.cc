#include "images/samples.h"

#include <half.h>

#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <type_traits>

namespace cumulus::images {
namespace {

std::atomic<bool> one_thread = false;

/// body(pointer to the first sample).
template <class Body>
void with_type(Samples samples, const Body& body) {
  switch (samples) {
    case Samples::kUint8:
      return body(static_cast<std::uint8_t*>(nullptr));
    case Samples::kUint16:
      return body(static_cast<std::uint16_t*>(nullptr));
    case Samples::kUint32:
      return body(static_cast<std::uint32_t*>(nullptr));
    case Samples::kUint64:
      return body(static_cast<std::uint64_t*>(nullptr));
    case Samples::kInt32:
      return body(static_cast<std::int32_t*>(nullptr));
    case Samples::kInt64:
      return body(static_cast<std::int64_t*>(nullptr));
    case Samples::kFloat16:
      return body(static_cast<half*>(nullptr));
    case Samples::kFloat32:
      return body(static_cast<float*>(nullptr));
    case Samples::kFloat64:
      return body(static_cast<double*>(nullptr));
    case Samples::kOther:
      break;
  }
  throw std::invalid_argument("samples of a kind that is not known");
}

/// Integers that stand for 0 to 1.
template <class T>
constexpr bool kIsShare = std::is_same_v<T, std::uint8_t> || std::is_same_v<T, std::uint16_t>;

template <class T>
double largest() {
  return static_cast<double>(std::numeric_limits<T>::max());
}

template <class From, class To>
To converted(From value) {
  if constexpr (std::is_same_v<From, To>) {
    return value;
  } else if constexpr (kIsShare<From> && kIsShare<To>) {
    return static_cast<To>(std::lround(static_cast<double>(value) * largest<To>() / largest<From>()));
  } else if constexpr (kIsShare<From> && !std::is_integral_v<To>) {
    const auto share = static_cast<float>(static_cast<double>(value) / largest<From>());
    if constexpr (std::is_same_v<To, half>) return half(share);
    return static_cast<To>(share);
  } else if constexpr (kIsShare<To>) {
    double number = static_cast<double>(value);
    if constexpr (std::is_integral_v<From>) number /= largest<From>();
    return static_cast<To>(number > 0 ? std::lround(std::min(number, 1.0) * largest<To>()) : 0);
  } else if constexpr (std::is_integral_v<To> && !std::is_integral_v<From>) {
    const double number = static_cast<double>(value);
    if (!(number > static_cast<double>(std::numeric_limits<To>::min())))
      return std::numeric_limits<To>::min();
    return number >= largest<To>() ? std::numeric_limits<To>::max() : static_cast<To>(std::llround(number));
  } else if constexpr (std::is_same_v<To, half>) {
    return half(static_cast<float>(value));
  } else {
    return static_cast<To>(value);
  }
}

template <class From, class To>
void convert_all(const From* source, To* target, std::size_t count) {
  in_parallel(count, [=](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) target[i] = converted<From, To>(source[i]);
  });
}

}  // namespace

std::size_t bytes_of(Samples samples) {
  std::size_t bytes = 0;
  with_type(samples, [&]<class T>(T*) { bytes = sizeof(T); });
  return bytes;
}

bool is_floating(Samples samples) {
  return samples == Samples::kFloat16 || samples == Samples::kFloat32 || samples == Samples::kFloat64;
}

void convert(Samples from, const void* source, Samples to, void* target, std::size_t count) {
  if (from == to) {
    std::memcpy(target, source, count * bytes_of(from));
    return;
  }
  with_type(from, [&]<class From>(From*) {
    with_type(to, [&]<class To>(To*) {
      convert_all(static_cast<const From*>(source), static_cast<To*>(target), count);
    });
  });
}

void multiply_by_alpha(Samples samples, void* pixels, std::size_t count, int channels, int alpha) {
  with_type(samples, [&]<class T>(T*) {
    auto* const first = static_cast<T*>(pixels);
    in_parallel(count, [=](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        T* const pixel = first + i * static_cast<std::size_t>(channels);
        const float share = converted<T, float>(pixel[alpha]);
        for (int channel = 0; channel < channels; ++channel) {
          if (channel != alpha)
            pixel[channel] = converted<float, T>(converted<T, float>(pixel[channel]) * share);
        }
      }
    });
  });
}

void divide_by_alpha(float* pixels, std::size_t count, int channels, int alpha) {
  in_parallel(count, [=](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      float* const pixel = pixels + i * static_cast<std::size_t>(channels);
      const float share = pixel[alpha];
      if (share == 0.0F) continue;
      for (int channel = 0; channel < channels; ++channel) {
        if (channel != alpha) pixel[channel] /= share;
      }
    }
  });
}

const void* stored_pixels(const Picture& picture, Samples stored, int straight_alpha,
                          std::vector<std::byte>& buffer) {
  const std::size_t pixels =
      static_cast<std::size_t>(picture.width) * static_cast<std::size_t>(picture.height);
  const std::size_t count = pixels * static_cast<std::size_t>(picture.channels);
  const bool divide = straight_alpha >= 0 && picture.colours == AlphaColours::kMultiplied;
  if (!divide && stored == picture.samples) return picture.pixels;
  buffer.resize(count * bytes_of(stored));
  if (!divide) {
    convert(picture.samples, picture.pixels, stored, buffer.data(), count);
    return buffer.data();
  }
  // In floating point, so that what was multiplied there is the same again.
  std::vector<float> floats(count);
  convert(picture.samples, picture.pixels, Samples::kFloat32, floats.data(), count);
  divide_by_alpha(floats.data(), pixels, picture.channels, straight_alpha);
  convert(Samples::kFloat32, floats.data(), stored, buffer.data(), count);
  return buffer.data();
}

int threads() { return one_thread ? 1 : std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

void keep_to_one_thread() { one_thread = true; }

}  // namespace cumulus::images
