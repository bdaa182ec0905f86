// Common parts of the two ns-3 programs: CPU time, input files, and TCP's configuration.
#pragma once

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <fstream>
#include <iostream>
#include <string>
#include <sys/resource.h>
#include <vector>

namespace bench
{

/// User CPU seconds of this process so far.
inline double
UserSeconds()
{
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_utime.tv_sec + usage.ru_utime.tv_usec * 1e-6;
}

/// Reads a file with `columns` integers per line.
inline std::vector<std::vector<uint64_t>>
ReadRows(const std::string& path, size_t columns)
{
    std::ifstream in(path);
    NS_ABORT_MSG_UNLESS(in, "cannot read " << path);
    std::vector<std::vector<uint64_t>> rows;
    std::vector<uint64_t> row(columns);
    while (true)
    {
        for (auto& cell : row)
        {
            if (!(in >> cell))
            {
                return rows;
            }
        }
        rows.push_back(row);
    }
}

/// Configures TCP as Subak's packet simulator models it: an ACK for every packet, no timestamps, and timers with the
/// simulation's resolution.
inline void
ConfigureTcp(uint32_t mss, uint32_t initialWindow, ns3::Time minRto)
{
    using namespace ns3;
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(mss));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(initialWindow));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(1u << 21));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(1u << 22));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(minRto));
    Config::SetDefault("ns3::TcpSocketBase::ClockGranularity", TimeValue(NanoSeconds(1)));
}

} // namespace bench
