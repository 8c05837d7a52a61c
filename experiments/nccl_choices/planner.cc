// The planner of NCCL 2.30.7 without a GPU: which channels its search finds on a description of one
// node, and what its table of costs says of every way, for groups of several numbers of such nodes.
//
// Build: check out github.com/NVIDIA/nccl at v2.30.7-1, write nccl.h from src/nccl.h.in, and compile
// src/graph/{topo,paths,search,rings,trees,connect,tuning,xml}.cc and this file with -std=c++17
// -fpermissive -DNCCL_OS_LINUX, NCCL's folders and those of CUDA's headers as include paths; link
// with -Wl,--unresolved-symbols=ignore-all, since nothing of CUDA, NVML or a network is called.
//
// Run: planner FILE.xml GPUS_PER_NODE NODES,NODES.. NAME; lines "C,NAME,nodes,gpus,collective,bytes,
// algorithm,protocol,time" for choices and "E,.." for times of every way, at 8 B and 1 GiB.
#include "comm.h"
#include "core.h"
#include "graph.h"
#include "topo.h"
#include "transport.h"
#include "xml.h"
#include <cstdarg>

int ncclDebugLevel = 0;
uint64_t ncclDebugMask = 0;
thread_local int ncclDebugNoWarn = 0;
const char* ncclFuncStr[NCCL_NUM_FUNCTIONS] = {"", "", "", "", ""};
const char* ncclAlgoStr[NCCL_NUM_ALGORITHMS] = {"tree", "ring", "", "", "nvls", "nvls-tree", "pat"};
const char* ncclProtoStr[NCCL_NUM_PROTOCOLS] = {"ll", "ll128", "simple"};

// What the graph code wants of the rest of NCCL.
void ncclDebugLogInternal(ncclDebugLogLevel level, unsigned long, const char*, const char*, int,
                          const char* format, ...) {
  if (level != NCCL_LOG_WARN) return;
  va_list arguments;
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
}
const char* ncclGetEnv(const char* name) { return getenv(name); }
int64_t ncclLoadParam(char const* name, int64_t usual, int64_t, int64_t* cache, int8_t*) {
  const char* given = getenv(name);
  return *cache = given ? atoll(given) : usual;
}
uint64_t getHostHash() { return 0; }
int64_t ncclParamWorkArgsBytes() { return 4096; }
ncclResult_t busIdToInt64(const char* text, int64_t* id) {
  *id = 0;
  for (; *text; text++)
    if (isxdigit(*text)) *id = *id * 16 + (isdigit(*text) ? *text - '0' : tolower(*text) - 'a' + 10);
  return ncclSuccess;
}
void ncclOsCpuZero(cpu_set_t& set) { CPU_ZERO(&set); }
void ncclOsCpuSet(cpu_set_t& set, int cpu) { CPU_SET(cpu, &set); }
cpu_set_t ncclOsCpuAnd(cpu_set_t const& a, cpu_set_t const&) { return a; }
int ncclOsCpuCount(cpu_set_t const&) { return 0; }
static ncclResult_t always(int* able, ncclComm*, ncclTopoGraph*, ncclPeerInfo*, ncclPeerInfo*) {
  *able = 1;
  return ncclSuccess;
}
alignas(64) static char transport[4096];
struct ncclTransport* ncclTransports[NTRANSPORTS + 1];

// As initTransportsRank (src/init.cc) does it, for the first rank of equal nodes.
static ncclComm* communicator(ncclTopoSystem* system, int nodes, int local) {
  auto* comm = (ncclComm*)calloc(1, sizeof(ncclComm));
  comm->topo = system;
  comm->nNodes = nodes;
  comm->nRanks = nodes * local;
  comm->localRanks = comm->maxLocalRanks = local;
  comm->netDeviceType = NCCL_NET_DEVICE_HOST;
  comm->peerInfo = (ncclPeerInfo*)calloc(comm->nRanks, sizeof(ncclPeerInfo));
  for (int rank = 0; rank < comm->nRanks; rank++) comm->peerInfo[rank].rank = rank;
  ncclTopoComputePaths(system, comm);
  ncclTopoTrimSystem(system, comm);
  ncclTopoComputePaths(system, comm);
  ncclTopoSearchInit(system);
  ncclTopoComputeCommCPU(comm);
  ncclTopoGetCompCap(system, &comm->minCompCap, &comm->maxCompCap);
  comm->compCap = comm->minCompCap;
  return comm;
}

static void search(ncclComm* comm, ncclTopoGraph* tree, ncclTopoGraph* ring, ncclTopoGraph* nvls) {
  *ring = ncclTopoGraph{.id = 0, .pattern = NCCL_TOPO_PATTERN_RING};
  ring->minChannels = 1;
  ring->maxChannels = MAXCHANNELS / 2;
  ncclTopoCompute(comm->topo, ring);
  *tree = ncclTopoGraph{.id = 1, .pattern = NCCL_TOPO_PATTERN_BALANCED_TREE};
  tree->minChannels = tree->maxChannels = ring->nChannels;
  ncclTopoCompute(comm->topo, tree);
  *nvls = ncclTopoGraph{.id = 3, .pattern = NCCL_TOPO_PATTERN_NVLS};
  nvls->minChannels = 1;
  nvls->maxChannels = MAXCHANNELS;
  if (comm->localRanks > 1 && comm->minCompCap >= 90) ncclTopoCompute(comm->topo, nvls);
  comm->nvlsSupport = nvls->nChannels > 0;
}

static void tune(ncclComm* comm, ncclTopoGraph* tree, ncclTopoGraph* ring, ncclTopoGraph* nvls) {
  static ncclTopoGraph none;
  ring->nChannels = tree->nChannels = std::min(ring->nChannels, tree->nChannels);
  comm->maxTreePattern = tree->pattern;
  comm->nChannels = std::min(MAXCHANNELS, 2 * ring->nChannels);  // ncclTopoPostset
  bool wide = comm->minCompCap >= 90 && comm->nNodes > 1 && ring->bwIntra > 45.0;
  if (wide && comm->nChannels < 16) comm->nChannels *= 2;
  ncclTopoGraph* graphs[NCCL_NUM_ALGORITHMS] = {tree, ring, &none, &none, nvls, nvls, tree};
  ncclTopoInitTunerConstants(comm);
  ncclTopoTuneModel(comm, comm->minCompCap, comm->maxCompCap, graphs);
}

static bool runs(ncclComm* comm, int function, int algorithm) {  // updateCollCostTable
  bool nvls = algorithm == NCCL_ALGO_NVLS || algorithm == NCCL_ALGO_NVLS_TREE;
  bool few = function == ncclFuncAllReduce || comm->localRanks <= NCCL_MAX_NVLS_ARITY;
  if (nvls && !(comm->nvlsSupport && few)) return false;
  if (algorithm == NCCL_ALGO_NVLS && comm->nNodes > 1) return false;
  return algorithm != NCCL_ALGO_COLLNET_DIRECT && algorithm != NCCL_ALGO_COLLNET_CHAIN;
}

static void print(ncclComm* comm, const char* name, int function, const char* collective) {
  for (int exponent = 3; exponent <= 33; exponent++) {
    size_t bytes = 1ULL << exponent;
    float least = -1;
    int best = 0;
    for (int way = 0; way < NCCL_NUM_ALGORITHMS * NCCL_NUM_PROTOCOLS; way++) {
      int a = way / NCCL_NUM_PROTOCOLS, p = way % NCCL_NUM_PROTOCOLS;
      if (!runs(comm, function, a)) continue;
      float time;
      ncclTopoGetAlgoTime(comm, function, a, p, bytes, 1, &time);
      if (time < 0) continue;
      if (exponent == 3 || exponent == 30)
        printf("E,%s,%d,%d,%s,%zu,%s,%s,%.3f\n", name, comm->nNodes, comm->nRanks, collective, bytes,
               ncclAlgoStr[a], ncclProtoStr[p], time);
      if (least < 0 || time < least) least = time, best = way;
    }
    printf("C,%s,%d,%d,%s,%zu,%s,%s,%.3f\n", name, comm->nNodes, comm->nRanks, collective, bytes,
           ncclAlgoStr[best / NCCL_NUM_PROTOCOLS], ncclProtoStr[best % NCCL_NUM_PROTOCOLS], least);
  }
}

int main(int, char** given) {
  setenv("NCCL_IGNORE_DISABLED_P2P", "2", 1);  // no NVML here
  ((ncclTransport*)transport)->canConnect = always;
  for (auto& one : ncclTransports) one = (ncclTransport*)transport;
  ncclTopoGraph found[3];
  bool searched = false;
  char* rest = nullptr;
  for (char* text = strtok_r(given[3], ",", &rest); text; text = strtok_r(nullptr, ",", &rest)) {
    ncclXml* xml;
    ncclTopoSystem* system;
    xmlAlloc(&xml, NCCL_GRAPH_XML_MAX_NODES);
    if (ncclTopoGetXmlFromFile(given[1], xml, 1) || ncclTopoGetSystemFromXml(xml, &system, 0)) return 1;
    ncclComm* comm = communicator(system, atoi(text), atoi(given[2]));
    ncclTopoGraph graphs[3];
    if (comm->nNodes > 1 && searched) memcpy(graphs, found, sizeof(found));
    else search(comm, &graphs[0], &graphs[1], &graphs[2]);
    comm->nvlsSupport = graphs[2].nChannels > 0;
    if (comm->nNodes > 1 && !searched) memcpy(found, graphs, sizeof(found));
    searched = searched || comm->nNodes > 1;
    tune(comm, &graphs[0], &graphs[1], &graphs[2]);
    print(comm, given[4], ncclFuncAllReduce, "all-reduce");
    print(comm, given[4], ncclFuncAllGather, "all-gather");
    free(xml);
  }
}
