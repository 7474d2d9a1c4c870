#include <cub/cub.cuh>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <string>
#include <vector>
#include "kernels/kd_tree/sampled/leaves.cuh"
#include "kernels/core/cuda_executor.h"
#include "kernels/kd_tree/kd_tree_query.h"
#include "kernels/kd_tree/scratch.h"
using namespace cumulus; using namespace cumulus::kd_tree;
#define CK(x) do { cudaError_t e=(x); if(e!=cudaSuccess){printf("CUDA %s line %d: %s\n",#x,__LINE__,cudaGetErrorString(e)); exit(1);} } while(0)
__device__ unsigned hsh(unsigned long long i){unsigned long long z=i*0x9E3779B97F4A7C15ull+0x1234567;z=(z^(z>>30))*0xBF58476D1CE4E5B9ull;z=(z^(z>>27))*0x94D049BB133111EBull;return (unsigned)((z^(z>>31))>>20);}
__device__ float uni(unsigned long long i){return ldexpf((float)(hsh(i)>>8),-24);}
__global__ void gen(float*p,long n,int kind){long i=blockIdx.x*(long)blockDim.x+threadIdx.x;if(i>=n)return;
 unsigned cl=hsh(i*7+6)%10;
 for(int a=0;a<3;a++){ if(kind==0)p[3*i+a]=uni(i*7+a); else if(kind==1){float c=(float)((cl*7+a*5)%11)/11.f;p[3*i+a]=c+ldexpf(uni(i*7+a)+uni(i*7+3+a)-1.f,-(int)cl-2);} else if(kind==2) p[3*i+a]=(float)(hsh(i*7+a)%5); else if(kind==3) p[3*i+a]=0.75f; else if(kind==4) p[3*i+a]=a<2?(float)i:3.f; else {unsigned k=hsh(i*7+3+a)%8; p[3*i+a]=k>1?uni(i*7+a):(k?INFINITY:-INFINITY);} }}
__device__ unsigned spread3(unsigned x){x&=1023;x=(x|x<<16)&0x30000FF;x=(x|x<<8)&0x300F00F;x=(x|x<<4)&0x30C30C3;x=(x|x<<2)&0x9249249;return x;}
__global__ void mort(const float*p,long n,unsigned*k,unsigned*v){long i=blockIdx.x*(long)blockDim.x+threadIdx.x;if(i>=n)return;k[i]=spread3(p[3*i]*1023)|spread3(p[3*i+1]*1023)<<1|spread3(p[3*i+2]*1023)<<2;v[i]=i;}
__global__ void gath(const float*p,long n,const unsigned*v,float*q){long i=blockIdx.x*(long)blockDim.x+threadIdx.x;if(i>=n)return;for(int a=0;a<3;a++)q[3*i+a]=p[3l*v[i]+a];}
__global__ void rnd(unsigned*k,unsigned*v,long n){long i=blockIdx.x*(long)blockDim.x+threadIdx.x;if(i<n){k[i]=hsh(i)<<4^hsh(i+99);v[i]=i;}}
struct Cfg{int B0,B1; long S0,S1; double slack,pslack; int T; double small; int a=0; };
struct Timer{ std::vector<cudaEvent_t> e; std::vector<const char*> nm; void mark(const char*s){cudaEvent_t x;CK(cudaEventCreate(&x));CK(cudaEventRecord(x));e.push_back(x);nm.push_back(s);} void print(){CK(cudaDeviceSynchronize());for(size_t i=1;i<e.size();i++){float ms;cudaEventElapsedTime(&ms,e[i-1],e[i]);printf(" %s %.1f",nm[i],ms*1000);}printf(" us\n");}};
struct Fork{ cudaStream_t s; cudaEvent_t a,b; Fork(){CK(cudaStreamCreateWithFlags(&s,cudaStreamNonBlocking));cudaEventCreateWithFlags(&a,cudaEventDisableTiming);cudaEventCreateWithFlags(&b,cudaEventDisableTiming);} cudaStream_t begin(){cudaEventRecord(a,0);cudaStreamWaitEvent(s,a,0);return s;} void end(){cudaEventRecord(b,s);cudaStreamWaitEvent(0,b,0);} };
struct Bld{ long n; int leaf; Cfg c; int levels; const float*pts; float*op; int64_t*oi; KdTreeNode*nd; float*nb; Planes pl; Parts ps, pb, pa; PointRecord* first; unsigned* counters; unsigned long long* nan; unsigned* begins; unsigned* over; unsigned* arrived; unsigned* large; size_t cbytes; std::vector<void*> mem;
 template<class T>T* al(size_t k){void*p;CK(cudaMalloc(&p,k*sizeof(T)));mem.push_back(p);return (T*)p;}
 KdTreeShape shape;
 Bld(long n_,int leaf_,Cfg c_,const float*p):n(n_),leaf(leaf_),c(c_),pts(p){ shape=kd_tree_shape(1,n,3,leaf); levels=shape.levels; int B=c.B0+c.B1;
  op=al<float>(3*n);oi=al<int64_t>(n);nd=al<KdTreeNode>(shape.nodes());nb=al<float>(shape.bounds());
  pl.keys=al<unsigned>(1u<<B);pl.points=al<PivotPoint>(1u<<B);
  size_t P=1u<<c.B0; cbytes=4*((1ul<<B)+16*P+4); counters=al<unsigned>(cbytes/4); pb.counts=counters; pb.stride=1; pa.counts=counters+(1ul<<B); pa.stride=8; ps.counts=pa.counts+8*P; ps.stride=8; arrived=ps.counts+8*P;
  over=al<unsigned>(4); large=al<unsigned>(1u<<B); first=al<PointRecord>(c.S0); nan=al<unsigned long long>(1); begins=al<unsigned>((1u<<B)+4);
  ps.capacity=(unsigned)(c.pslack*(n>>c.S1)/P)/2*2; pb.capacity=(unsigned)(c.slack*n/(1<<B))/4*4+16; pa.capacity=(unsigned)(1.9*n/P)/4*4+64;
  ps.records=al<PointRecord>((size_t)ps.capacity*P); pb.records=al<PointRecord>((size_t)pb.capacity<<B); pa.records=al<PointRecord>((size_t)pa.capacity*P); }
 ~Bld(){for(auto p:mem)cudaFree(p);}
 template<int T,int K,int TL,int KL> void leaves(const Forest<float>&f,PartTable tb,unsigned small,int B,Timer*t){ auto M=[&](const char*s){if(t)t->mark(s);}; auto kl=build_parts<TL,KL,3>; auto k=build_parts<T,K,3>; int lv=levels-1-B; size_t mx=Part<TL,KL>::bytes(pb.capacity,1u<<lv); size_t bs=Part<T,K>::bytes(small,1u<<lv);
  if(pb.capacity+ (1u<<lv) > unsigned(TL*KL) || small + (1u<<lv) > unsigned(T*K)) {printf("too few items: %u of %d, %u of %d\n",pb.capacity,TL*KL,small,T*K); abort();}
  CK(cudaFuncSetAttribute(kl,cudaFuncAttributeMaxDynamicSharedMemorySize,(int)mx)); CK(cudaFuncSetAttribute(k,cudaFuncAttributeMaxDynamicSharedMemorySize,(int)bs));
  int pl_,ps_; CK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&pl_,kl,TL,mx)); CK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&ps_,k,T,bs)); if(t)printf("  lv %d large %zu B %d/SM small cap %u %zu B %d/SM;",lv,mx,pl_,small,bs,ps_);
  static Fork fk; bool fork=!t; kl<<<132*pl_,TL,mx,fork?fk.begin():0>>>(LeafJob<3>{f,pb,tb,pb.capacity,true,B,lv,op,oi}); CK(cudaGetLastError()); M("large");
  k<<<1u<<B,T,bs>>>(LeafJob<3>{f,pb,tb,small,false,B,lv,op,oi}); CK(cudaGetLastError()); if(fork)fk.end(); M("small"); }
 void run(Timer*t=nullptr){ int B=c.B0+c.B1; auto M=[&](const char*s){if(t)t->mark(s);}; M("");
  CK(cudaMemsetAsync(counters,0,cbytes)); CK(cudaMemsetAsync(nan,0xff,8)); M("memset");
  auto sm=[&](const void*f,size_t b){CK(cudaFuncSetAttribute(f,cudaFuncAttributeMaxDynamicSharedMemorySize,(int)b));};
  SampleSet s0(n,c.S0);
  { PlaneJob j{(unsigned)c.S0,pl,0,c.B0}; size_t b=Part<1024,kSampleItems>::bytes(j.capacity,1u<<j.levels); sm((void*)split_samples,b); gather_samples<3><<<(c.S0+127)/128,128>>>(pts,s0,first); M("gather"); split_samples<<<1,1024,b>>>(j,first,c.S0); CK(cudaGetLastError()); M("split_samples"); }
  static Fork fk; bool fork=!t; size_t b=sizeof(ScatterTile); sm((void*)scatter_points<3>,b); sm((void*)scatter_samples<3>,b); sm((void*)scatter_parts,b); cudaStream_t s2=fork?fk.begin():0;
  { long S=(n+(1l<<c.S1)-1)>>c.S1; scatter_samples<3><<<(S+kScatterTile-1)/kScatterTile,kScatterThreads,b,s2>>>(ScatterJob{n,pl,0,c.B0,{},ps,nan},pts,(int)c.S1); CK(cudaGetLastError()); M("scatter_samples");
    PlaneJob k{ps.capacity,pl,c.B0,c.B1}; size_t bp=Part<1024,kSampleItems>::bytes(k.capacity,1u<<k.levels); if(ps.capacity>1024u*kSampleItems-8){printf("part too large\n");abort();} sm((void*)split_parts,bp); split_parts<<<1u<<c.B0,1024,bp,s2>>>(k,ps); CK(cudaGetLastError()); M("split_parts"); }
  scatter_points<3><<<(n+kScatterTile-1)/kScatterTile,kScatterThreads,b>>>(ScatterJob{n,pl,0,c.B0,{},pa,nan},pts); CK(cudaGetLastError()); M("scatter_points"); if(fork)fk.end();
  scatter_parts<<<dim3((pa.capacity+kScatterTile-1)/kScatterTile,1u<<c.B0),kScatterThreads,b>>>(ScatterJob{n,pl,c.B0,c.B1,pa,pb,nan}); CK(cudaGetLastError()); M("scatter_parts");
  PartTable tb{begins,large,over+1,over}; unsigned small=std::min<unsigned>(pb.capacity,(unsigned)(c.small*n/(1<<B))/2*2);
  sum_parts<<<1,1024>>>(TotalJob{ps,1u<<c.B0,pa,pb,1u<<B,small,tb}); CK(cudaGetLastError()); M("sum");
  Forest<float> f{shape,nd,nb,KdTreeSplit::kWidestSpread,leaf}; 
  switch(c.T){case 128: leaves<128,7,256,7>(f,tb,small,B,t);break; case 256: leaves<256,7,512,7>(f,tb,small,B,t);break; case 257: leaves<256,9,512,11>(f,tb,small,B,t);break; default:abort();}
  bound_upper_nodes<<<B>kUpperLevels?1<<(B-kUpperLevels):1,1<<kUpperLevels>>>(UpperJob{f,tb,B,arrived}); CK(cudaGetLastError()); M("upper");
 }
};
// oracle
struct Orc{ long n;const float*p;int leaf,levels;Cfg c; std::vector<KdTreeNode> nd; std::vector<float> nb; std::vector<float> op; std::vector<int64_t> oi; KdTreeShape sh;
 struct Piv{float x;unsigned i;int a;}; std::vector<Piv> pl;
 bool lessp(unsigned i,const Piv&v){float x=p[3l*i+v.a];return x<v.x||(x==v.x&&i<v.i);}
 // splits range of ids, level by level; calls node(level,num,begin,end) and store pivots
 void split(std::vector<unsigned>&id,long b,long e,int level,int left,unsigned num,std::array<float,6> box,int axis,std::function<void(int,unsigned,Piv)> st){
  if(left==0)return; if(level%kLevelsAnAxis==0){axis=widest_axis(3,[&](int i){return box[i];},[&](int i){return box[3+i];});}
  if(b==e){ st(level,num,{-INFINITY,0,axis}); split(id,b,e,level+1,left-1,2*num,box,axis,st);split(id,b,e,level+1,left-1,2*num+1,box,axis,st);return;}
  long m=b+(e-b)/2; std::nth_element(id.begin()+b,id.begin()+m,id.begin()+e,[&](unsigned i,unsigned j){float x=p[3l*i+axis],y=p[3l*j+axis];return x<y||(x==y&&i<j);});
  Piv v{p[3l*id[m]+axis],id[m],axis}; st(level,num,v); auto l=box,r=box; l[3+axis]=v.x; r[axis]=v.x; split(id,b,m,level+1,left-1,2*num,l,axis,st); split(id,m,e,level+1,left-1,2*num+1,r,axis,st); }
 std::array<float,6> boxof(const std::vector<unsigned>&id,long b,long e){std::array<float,6> x{INFINITY,INFINITY,INFINITY,-INFINITY,-INFINITY,-INFINITY};for(long i=b;i<e;i++)for(int a=0;a<3;a++){float v=p[3l*id[i]+a]+0.f;x[a]=std::min(x[a],v);x[3+a]=std::max(x[3+a],v);}return x;}
 unsigned down(unsigned i,int lv){unsigned node=0;for(int l=0;l<lv;l++)node=2*node+(lessp(i,pl[node])?1:2);return node+1-(1u<<lv);}
 Orc(long n_,const float*p_,int leaf_,Cfg c_):n(n_),p(p_),leaf(leaf_),c(c_){ sh=kd_tree_shape(1,n,3,leaf);levels=sh.levels;nd.resize(sh.nodes());nb.resize(sh.bounds()); int B=c.B0+c.B1; pl.resize(1u<<B);
  {SampleSet s(n,c.S0);std::vector<unsigned> id;for(long i=0;i<c.S0;i++)id.push_back(s.index(i));split(id,0,id.size(),0,c.B0,0,boxof(id,0,id.size()),0,[&](int l,unsigned k,Piv v){pl[(1u<<l)-1+k]=v;});}
  {std::vector<std::vector<unsigned>> ids(1u<<c.B0);for(long i=0;i<n;i++)if(is_sample(i,c.S1)){ids[down(i,c.B0)].push_back(i);} for(unsigned q=0;q<ids.size();q++)split(ids[q],0,ids[q].size(),0,c.B1,0,boxof(ids[q],0,ids[q].size()),0,[&](int l,unsigned k,Piv v){pl[(1u<<(c.B0+l))-1+(q<<l)+k]=v;});}
  std::vector<std::vector<unsigned>> ids(1u<<B);for(long i=0;i<n;i++)ids[down(i,B)].push_back(i); std::vector<unsigned> all; int lv=levels-1-B; std::vector<long> lb;
  for(auto&id:ids){ split(id,0,id.size(),0,lv,0,boxof(id,0,id.size()),0,[](int,unsigned,Piv){}); std::vector<long> bs{0,(long)id.size()}; for(int l=0;l<lv;l++){std::vector<long> nx;for(size_t i=0;i+1<bs.size();i++){nx.push_back(bs[i]);nx.push_back(bs[i]+(bs[i+1]-bs[i])/2);}nx.push_back(bs.back());bs=nx;} for(size_t i=0;i+1<bs.size();i++){std::sort(id.begin()+bs[i],id.begin()+bs[i+1]);lb.push_back(all.size()+bs[i]);} all.insert(all.end(),id.begin(),id.end()); }
  lb.push_back(n); op.resize(3*n);oi.resize(n);for(long i=0;i<n;i++){oi[i]=all[i];for(int a=0;a<3;a++)op[3*i+a]=p[3l*all[i]+a];}
  for(int l=levels-1;l>=0;l--)for(long k=0;k<1l<<l;k++){long f=k<<(levels-1-l),t=(k+1)<<(levels-1-l);long node=(1l<<l)-1+k;auto b=boxof(all,lb[f],lb[t]);for(int a=0;a<3;a++){nb[node*3+a]=b[a];nb[(sh.nodes()+node)*3+a]=b[3+a];} nd[node]={lb[f],lb[t],l+1==levels,box_radius(3,[&](int i){return b[i];},[&](int i){return b[3+i];})};}
 }};
template<class T> std::vector<T> down(const T*p,size_t n){std::vector<T> v(n);CK(cudaMemcpy(v.data(),p,n*sizeof(T),cudaMemcpyDeviceToHost));return v;}
double sort_ms(long n){ unsigned*k,*v,*k2,*v2;CK(cudaMalloc(&k,4*n));CK(cudaMalloc(&v,4*n));CK(cudaMalloc(&k2,4*n));CK(cudaMalloc(&v2,4*n)); size_t tb=0; cub::DeviceRadixSort::SortPairs(nullptr,tb,k,k2,v,v2,n); void*t;CK(cudaMalloc(&t,tb)); rnd<<<(n+255)/256,256>>>(k,v,n); std::vector<float> ms; for(int r=0;r<11;r++){cudaEvent_t a,b;cudaEventCreate(&a);cudaEventCreate(&b);cudaEventRecord(a);cub::DeviceRadixSort::SortPairs(t,tb,k,k2,v,v2,n);cudaEventRecord(b);CK(cudaDeviceSynchronize());float x;cudaEventElapsedTime(&x,a,b);ms.push_back(x);} std::sort(ms.begin(),ms.end()); cudaFree(k);cudaFree(v);cudaFree(k2);cudaFree(v2);cudaFree(t); return ms[5]; }
int bad=0;
void verify(long n,int kind,int leaf,Cfg c){ float*p;CK(cudaMalloc(&p,12*n));gen<<<(n+255)/256,256>>>(p,n,kind);CK(cudaDeviceSynchronize()); Bld b(n,leaf,c,p); CK(cudaMemset(b.oi,0xEE,8*n)); b.run();CK(cudaDeviceSynchronize()); auto h=down(p,3*n); unsigned ov=down(b.over,1)[0]; if(ov){auto cs=down(b.begins,(1u<<(c.B0+c.B1))+1);std::adjacent_difference(cs.begin(),cs.end(),cs.begin());printf("verify n=%ld kind=%d overflow, max %u of %u; ",n,kind,*std::max_element(cs.begin(),cs.end()),b.pb.capacity);std::vector<unsigned> qs{0};printf("sample max %u of %u\n",*std::max_element(qs.begin(),qs.end()),b.ps.capacity);cudaFree(p);return;}
 Orc o(n,h.data(),leaf,c); auto oi=down(b.oi,n); auto op=down(b.op,3*n);auto nd=down(b.nd,o.sh.nodes());auto nb=down(b.nb,o.sh.bounds()); long e[4]={0,0,0,0}; long first=-1; for(long i=0;i<n;i++)if(oi[i]!=o.oi[i]){e[0]++;if(first<0)first=i;} e[1]=memcmp(op.data(),o.op.data(),12*n)!=0; for(size_t i=0;i<nd.size();i++)e[2]+=memcmp(&nd[i],&o.nd[i],sizeof(KdTreeNode))!=0; for(size_t i=0;i<nb.size();i++)e[3]+=nb[i]!=o.nb[i]; bool ok=!(e[0]||e[1]||e[2]||e[3]); if(!ok)bad++; printf("verify n=%ld kind=%d leaf=%d B=%d+%d: %s idx %ld (first %ld) pts %ld nodes %ld bounds %ld\n",n,kind,leaf,c.B0,c.B1,ok?"ok":"WRONG",e[0],first,e[1],e[2],e[3]); cudaFree(p); }
void timeit(const char*what,const float*p,long n,int leaf,Cfg c,double sort){ Bld b(n,leaf,c,p); b.run();b.run();CK(cudaDeviceSynchronize()); unsigned ov=down(b.over,1)[0]; auto cs=down(b.begins,(1u<<(c.B0+c.B1))+1);std::adjacent_difference(cs.begin(),cs.end(),cs.begin()); unsigned mx=*std::max_element(cs.begin(),cs.end()); std::vector<float> ms; for(int r=0;r<11;r++){cudaEvent_t x,y;cudaEventCreate(&x);cudaEventCreate(&y);cudaEventRecord(x);b.run();cudaEventRecord(y);CK(cudaDeviceSynchronize());float t;cudaEventElapsedTime(&t,x,y);ms.push_back(t);} std::sort(ms.begin(),ms.end()); printf("%s n=%ld leaf=%d B=%d+%d S=%ld,%ld slack=%.2f T=%d small=%.2f: %.4f ms = %.2f sorts%s (max/avg %.2f)\n  ",what,n,leaf,c.B0,c.B1,c.S0,c.S1,c.slack,c.T,c.small,ms[5],ms[5]/sort,ov?" OVERFLOW":"",mx/((double)n/(1<<(c.B0+c.B1)))); Timer t; b.run(&t); t.print(); fflush(stdout); }
template<class F> double med(F f){std::vector<float> ms;for(int r=0;r<7;r++){cudaEvent_t a,b;cudaEventCreate(&a);cudaEventCreate(&b);cudaEventRecord(a);f();cudaEventRecord(b);CK(cudaDeviceSynchronize());float t;cudaEventElapsedTime(&t,a,b);ms.push_back(t);}std::sort(ms.begin(),ms.end());return ms[3];}
__global__ void differ(const int64_t*a,const int64_t*b,const float*x,const float*y,long n,unsigned long long*c){long i=blockIdx.x*(long)blockDim.x+threadIdx.x;if(i<n&&(a[i]!=b[i]||x[i]!=y[i]))atomicAdd(c,1ull);}
void queries(long n,int kind,Cfg c){ CudaDevice dev(0); CudaExecutor ex(dev); ex.bind_thread(); const long Q=2000000; auto A=[](size_t b){void*p;CK(cudaMalloc(&p,b));return p;};
 float*p=(float*)A(12*n);gen<<<(n+255)/256,256>>>(p,n,kind); float*q=(float*)A(12*Q),*q2=(float*)A(12*Q),*all=(float*)A(12*(n+Q)); gen<<<(n+Q+255)/256,256>>>(all,n+Q,kind);CK(cudaDeviceSynchronize());CK(cudaMemcpy(q,all+3*n,12*Q,cudaMemcpyDeviceToDevice));
 {unsigned*k=(unsigned*)A(4*Q),*v=(unsigned*)A(4*Q),*k2=(unsigned*)A(4*Q),*v2=(unsigned*)A(4*Q);size_t tb=0;cub::DeviceRadixSort::SortPairs(nullptr,tb,k,k2,v,v2,Q);void*t=A(tb);mort<<<(Q+255)/256,256>>>(q,Q,k,v);cub::DeviceRadixSort::SortPairs(t,tb,k,k2,v,v2,Q);gath<<<(Q+255)/256,256>>>(q,Q,v2,q2);CK(cudaDeviceSynchronize());}
 Bld b(n,20,c,p); b.run(); CK(cudaDeviceSynchronize()); KdTreeShape sh=b.shape; KdTreeOptions o; Bld e(n,20,c,p); KdTreeReport*rep; CK(cudaMallocHost((void**)&rep,64)); NeighborReport*nr; CK(cudaMallocHost((void**)&nr,64));
 KdTreeArrays<float,Space::kDevice> tr{{e.op,(size_t)3*n},{e.oi,(size_t)n},{e.nd,(size_t)sh.nodes()},{e.nb,(size_t)sh.bounds()}};
 ex.reserve_scratch(build_kd_tree_scratch_bytes<float,Space::kDevice>(sh,o)); build_kd_tree(ex,DeviceSpan<const float>{p,(size_t)3*n},sh,o,tr,rep); ex.synchronize();
 CudaEvent x,y; std::vector<double> bt; for(int r=0;r<5;r++){ex.reuse_scratch();x.record(ex.stream());build_kd_tree(ex,DeviceSpan<const float>{p,(size_t)3*n},sh,o,tr,rep);y.record(ex.stream());ex.synchronize();bt.push_back(y.milliseconds_since(x));} std::sort(bt.begin(),bt.end());
 int64_t*i1=(int64_t*)A(64*Q),*i2=(int64_t*)A(64*Q);float*d1=(float*)A(32*Q),*d2=(float*)A(32*Q);unsigned long long*cn=(unsigned long long*)A(8);
 for(int m=0;m<2;m++)for(int k:{8,1}){ NeighborSearch se; se.queries=Q; double ms[2]; for(int w=0;w<2;w++){ Bld&t=w?b:e; QueriedForest<float,Space::kDevice> f{sh,{{t.op,(size_t)3*n},{t.oi,(size_t)n},{t.nd,(size_t)sh.nodes()},{t.nb,(size_t)sh.bounds()}},{{m?q2:q,(size_t)3*Q},{}},se}; NearestJob<float,Space::kDevice> j{f,k,{w?i2:i1,(size_t)k*Q},{w?d2:d1,(size_t)k*Q}}; ex.reserve_scratch(find_nearest_scratch_bytes<float,Space::kDevice>(sh,se,k)); find_nearest(ex,j,nr);ex.synchronize(); std::vector<double> v;for(int r=0;r<7;r++){ex.reuse_scratch();x.record(ex.stream());find_nearest(ex,j,nr);y.record(ex.stream());ex.synchronize();v.push_back(y.milliseconds_since(x));}std::sort(v.begin(),v.end());ms[w]=v[3];}
  cudaMemset(cn,0,8);differ<<<(k*Q+255)/256,256>>>(i1,i2,d1,d2,k*Q,cn);CK(cudaDeviceSynchronize()); printf("queries n=%ld %s %s k=%d: exact tree %.3f ms, sampled %.3f ms, %.3f times; results that differ %llu; exact build %.3f ms\n",n,kind?"clustered":"uniform",m?"morton":"random",k,ms[0],ms[1],ms[1]/ms[0],down(cn,1)[0],bt[2]); }
 for(void*v:{(void*)p,(void*)q,(void*)q2,(void*)all,(void*)i1,(void*)i2,(void*)d1,(void*)d2,(void*)cn})cudaFree(v); }
int main(int argc,char**argv){ std::string mode=argc>1?argv[1]:"all";
 setvbuf(stdout,nullptr,_IOLBF,0); Cfg small{4,3,1024,4,2.4,2.0,256,1.2};
 if(mode!="prof")for(int kind=0;kind<6;kind++){ verify(150000,kind,20,small); verify(150001,kind,40,Cfg{4,4,1024,4,2.4,2.0,128,1.1}); }
 if(mode!="prof"){verify(1000003,0,20,Cfg{5,5,4096,4,2.4,1.75,256,1.3}); verify(1000003,1,20,Cfg{5,6,4096,3,2.4,1.75,128,1.3});}
 if(mode=="verify")return bad;
 if(mode=="query"){for(int kind:{0,1}){queries(1000000,kind,{5,6,4096,4,2.8,1.75,128,1.4});queries(10000000,kind,{7,7,8192,4,2.7,1.75,128,1.4});}return bad;}
 if(mode=="prof"){long n=10000000;float*p;CK(cudaMalloc(&p,12*n));gen<<<(n+255)/256,256>>>(p,n,0);Bld b(n,20,Cfg{7,7,8192,4,2.7,1.75,128,1.4},p);b.run();CK(cudaDeviceSynchronize());b.run();CK(cudaDeviceSynchronize());return 0;}
 for(long n:{1000000l,10000000l,100000000l}){ double s=sort_ms(n); printf("== n=%ld cub sort %.4f ms\n",n,s); float*p;CK(cudaMalloc(&p,12*n));
  for(int kind:{0,6,1}){ if(kind<2){gen<<<(n+255)/256,256>>>(p,n,kind);} else if(kind==6){ if(n>10000000)continue; gen<<<(n+255)/256,256>>>(p,n,0); unsigned*k,*v,*k2,*v2;CK(cudaMalloc(&k,4*n));CK(cudaMalloc(&v,4*n));CK(cudaMalloc(&k2,4*n));CK(cudaMalloc(&v2,4*n));size_t tb=0;cub::DeviceRadixSort::SortPairs(nullptr,tb,k,k2,v,v2,n);void*t;CK(cudaMalloc(&t,tb));mort<<<(n+255)/256,256>>>(p,n,k,v);cub::DeviceRadixSort::SortPairs(t,tb,k,k2,v,v2,n);float*q;CK(cudaMalloc(&q,12*n));gath<<<(n+255)/256,256>>>(p,n,v2,q);CK(cudaDeviceSynchronize());CK(cudaMemcpy(p,q,12*n,cudaMemcpyDeviceToDevice));cudaFree(q);cudaFree(k);cudaFree(v);cudaFree(k2);cudaFree(v2);cudaFree(t);} else { if(n>10000000)continue; gen<<<(n+255)/256,256>>>(p,n,4);} CK(cudaDeviceSynchronize());
   const char*nm=kind==0?"uniform":kind==1?"clustered":kind==6?"morton":"line";
   std::vector<Cfg> cs; 
   if(n==1000000) cs={{5,6,4096,4,2.8,1.75,128,1.4}};
   else if(n==10000000) cs={{7,7,8192,4,2.7,1.75,128,1.4},{7,7,8192,4,2.7,1.75,128,1.3},{7,7,4096,4,2.8,1.8,128,1.4}};
   else cs={{8,8,8192,7,3.4,1.8,257,1.4},{8,8,8192,6,3.2,1.55,257,1.4},{8,8,8192,7,3.4,1.8,257,1.3}};
   if(kind>=6) cs.resize(std::min<size_t>(cs.size(),n==10000000?3:1));
   for(auto&c:cs) timeit(nm,p,n,20,c,s); }
  cudaFree(p); }
 printf("bad %d\n",bad); return bad; }
