#include <cstdio>
#include <random>
#include <string>
#include "kernels/sampling_table/sampling_table.h"
#include "tests/cases/sampling_table_case.h"
#include "emu.h"
#include "kernels/sampling_table/sampling_table_dense_rows.cuh"
using namespace cumulus; using namespace cumulus::sampling_rows;
template<int kThreads> void run_row(const Target& target,bool trees,const float* w,std::uint32_t exponent){
  static std::vector<uint4> shared; shared.assign(DenseOnChip::bytes(target.count,target.guide_size,trees?DenseLookup::kTrees:DenseLookup::kCutpoints)/16+2,make_uint4(~0u,~0u,~0u,~0u));
  emu::run(kThreads,0,[&]{
    DenseOnChip dense(reinterpret_cast<std::uint32_t*>(shared.data()),target.count,target.guide_size);
    clear_dense<kThreads>(dense,target.guide_size);
    std::uint32_t bits[kOwn]={}; std::uint32_t first=threadIdx.x*kOwn;
    if(first<target.count) for(unsigned k=0;k<kOwn;++k){ std::memcpy(&bits[k],&w[first+k],4); if(bits[k]==0x80000000u)bits[k]=0;}
    __syncthreads();
    if(trees) build_dense<kThreads,DenseLookup::kTrees>(target,dense,exponent,bits); else build_dense<kThreads,DenseLookup::kCutpoints>(target,dense,exponent,bits);
  });
}
int main(){
  CpuExecutor ex; int bad=0,n=0; std::mt19937 rng(1);
  for(int width:{32,512,1040,2048,4096,5000/16*16,8192,16384}) for(int pattern=0;pattern<16;++pattern) for(int m:{1,6,7}) for(int gs:{0,1,2}){
    if(gs>0&&width>2048) continue;
    std::vector<float> w;
    if(pattern<10){ auto map=testing::make_map<float>({3,width},1,0,testing::MapPattern(pattern)); for(int x=0;x<width;++x) w.push_back(map.at(1,x)); }
    else for(int i=0;i<width;++i){ float u=float(rng()>>8)/16777216.0f; switch(pattern){
      case 10: w.push_back(std::pow(float(i+1)/width,20)); break; case 11: w.push_back(std::pow(float(i%32+1)/32,25)); break;
      case 12: w.push_back(rng()%3?0:u); break; case 13: w.push_back(i==width/3?1e6f:u); break; case 14: w.push_back(i<width/2?1:1e-6f*u); break;
      default: w.push_back(-std::log(u+1e-9f)); } }
    SamplingTableParams p{.height=1,.width=width,.projection=sampling::Projection::kPlane,.method=sampling::Method(m)};
    p.row_guide_size=gs==1?std::uint32_t(width/2/32*32):gs==2?std::uint32_t(width*3/32*32):0; if(gs==1&&p.row_guide_size==0)continue; if(gs==2&&width>1100)continue;
    if(gs==0&&width%32) continue;
    struct alignas(256) B{std::byte b[256];}; std::size_t size=sampling_table_bytes(p); std::vector<B> host(size/256),dev(size/256);
    SamplingTableReport rep; ex.reserve_scratch(sampling_table_scratch_bytes(p));
    build_sampling_table(ex,HostImage<const float>(w.data(),1,width,1),p,{host[0].b,size},&rep);
    auto header=sampling_table_header(p); std::memset(dev[0].b,0xEE,size);
    Target target=sampling_layout::row_target(header,dev[0].b,0);
    std::uint32_t largest=0; for(float v:w){std::uint32_t b; std::memcpy(&b,&v,4); largest=std::max(largest,b==0x80000000u?0:b);} 
    std::uint32_t e=row_exponent(largest,width); bool trees=m!=1;
    if(width<=2048) run_row<128>(target,trees,w.data(),e); else if(width<=4096) run_row<256>(target,trees,w.data(),e); else if(width<=8192) run_row<512>(target,trees,w.data(),e); else run_row<1024>(target,trees,w.data(),e);
    auto cmp=[&](const char* what,std::uint64_t off,std::uint64_t bytes){ for(std::uint64_t i=0;i<bytes;++i) if(host[0].b[off+i]!=dev[0].b[off+i]){ printf("width %d pattern %d method %d guide %u: %s byte %lu\n",width,pattern,m,header.row_guide_size,what,i); ++bad; return; } };
    ++n; cmp("lower",header.row_cdf_offset,4ull*width); cmp("guide",header.row_guide_offset,target.guide_bytes()); if(m==6) cmp("nodes",header.row_nodes_offset,target.node_bytes());
  }
  printf("%d rows, %d wrong\n",n,bad); return bad!=0;
}
