#pragma once
// A block of a kernel on the host: each thread a fiber.
#include <ucontext.h>
#include <cstdint>
#include <cstring>
#include <cmath>
#include <functional>
#include <memory>
#include <type_traits>
#include <vector>
#include <vector_types.h>
#include <vector_functions.h>
namespace emu {
struct Dim { unsigned x=1,y=1,z=1; };
struct Block {
  unsigned n=0, current=0; std::vector<ucontext_t> ctx; std::vector<std::unique_ptr<char[]>> stacks; std::vector<char> done; ucontext_t main;
  std::function<void()> body; unsigned barrier_arrived=0; unsigned long barrier_gen=0; std::vector<unsigned> warp_arrived; std::vector<unsigned long> warp_gen;
  std::vector<std::uint64_t> exchange;
};
inline Block* block=nullptr;
inline Dim block_index, block_dim;
inline void yield(){ unsigned me=block->current; unsigned next=me; do { next=(next+1)%block->n; } while(block->done[next]&&next!=me); if(next==me) return; block->current=next; swapcontext(&block->ctx[me],&block->ctx[next]); }
inline void entry(){ block->body(); unsigned me=block->current; block->done[me]=1; for(unsigned k=1;k<block->n;++k){unsigned nx=(me+k)%block->n; if(!block->done[nx]){block->current=nx; setcontext(&block->ctx[nx]);}} setcontext(&block->main); }
inline void run(unsigned threads,unsigned index,std::function<void()> body){ Block b; b.n=threads; b.ctx.resize(threads); b.stacks.resize(threads); b.done.assign(threads,0); b.body=std::move(body); b.warp_arrived.assign(threads/32,0); b.warp_gen.assign(threads/32,0); b.exchange.assign(threads,0); block=&b; block_index.x=index; block_dim.x=threads;
  for(unsigned i=0;i<threads;++i){ b.stacks[i].reset(new char[65536]); getcontext(&b.ctx[i]); b.ctx[i].uc_stack.ss_sp=b.stacks[i].get(); b.ctx[i].uc_stack.ss_size=65536; b.ctx[i].uc_link=nullptr; makecontext(&b.ctx[i],entry,0);} b.current=0; swapcontext(&b.main,&b.ctx[0]); block=nullptr; }
inline void sync_block(){ auto gen=block->barrier_gen; if(++block->barrier_arrived==block->n){block->barrier_arrived=0;++block->barrier_gen;return;} while(block->barrier_gen==gen) yield(); }
inline void sync_warp(){ unsigned w=block->current/32; auto gen=block->warp_gen[w]; if(++block->warp_arrived[w]==32){block->warp_arrived[w]=0;++block->warp_gen[w];return;} while(block->warp_gen[w]==gen) yield(); }
struct Tid { struct X { operator unsigned() const { return block->current; } } x; };
template<class T> T exchange(T v,unsigned src_lane){ std::uint64_t bits=0; std::memcpy(&bits,&v,sizeof(T)); unsigned me=block->current; block->exchange[me]=bits; sync_warp(); std::uint64_t r=block->exchange[me/32*32+src_lane]; sync_warp(); T out; std::memcpy(&out,&r,sizeof(T)); return out; }
}
inline emu::Tid threadIdx; 
#define blockIdx emu::block_index
#define blockDim emu::block_dim
#undef __device__
#undef __global__
#undef __shared__
#undef __launch_bounds__
#undef __grid_constant__
#define __device__
#define __global__
#define __shared__ static
#define __launch_bounds__(...)
#define __grid_constant__
inline void __syncthreads(){emu::sync_block();}
inline void __syncwarp(){emu::sync_warp();}
inline unsigned lane_(){return emu::block->current%32;}
template<class T> T __shfl_sync(unsigned,T v,unsigned src){return emu::exchange(v,src%32);}
template<class T> T __shfl_up_sync(unsigned,T v,unsigned d){return emu::exchange(v,lane_()>=d?lane_()-d:lane_());}
template<class T> T __shfl_down_sync(unsigned,T v,unsigned d){return emu::exchange(v,lane_()+d<32?lane_()+d:lane_());}
template<class T> T __shfl_xor_sync(unsigned,T v,unsigned d){return emu::exchange(v,lane_()^d);}
inline unsigned __umulhi(unsigned a,unsigned b){return unsigned(std::uint64_t(a)*b>>32);}
inline int __clz(int v){return v==0?32:__builtin_clz(unsigned(v));}
inline int __popc(unsigned v){return __builtin_popcount(v);}
inline int __ffs(int v){return __builtin_ffs(v);}
inline unsigned __byte_perm(unsigned x,unsigned y,unsigned s){std::uint64_t v=x|std::uint64_t(y)<<32; unsigned r=0; for(int i=0;i<4;++i) r|=unsigned(v>>(8*(s>>(4*i)&7))&0xFF)<<8*i; return r;}
inline float __uint_as_float(unsigned u){float f;std::memcpy(&f,&u,4);return f;}
inline unsigned long long __float2ull_rz(float f){return (unsigned long long)f;}
inline unsigned __double2uint_rz(double d){return d>=4294967295.0?0xFFFFFFFFu:d<=0?0:unsigned(d);}
template<class A,class B> constexpr std::common_type_t<A,B> max(A a,B b){return a>b?a:b;}
template<class A,class B> constexpr std::common_type_t<A,B> min(A a,B b){return a<b?a:b;}
template<class T> T atomicAdd(T* p,T v){T o=*p;*p+=v;return o;}
template<class T> T atomicMin(T* p,T v){T o=*p;if(v<o)*p=v;return o;}
