// The permutation workload in ns-3: 9 leaves x 16 hosts at 10 Gb/s, 4 spines at 40 Gb/s, 2 us a link, one long DCTCP
// flow from every host (K = 65 packets at 10 Gb/s, in proportion at 40), an ACK for every packet.
//
//   permutation --pairs=FILE [--ms=1]
//
// FILE has a line "source destination" a flow. Prints packet-hops (packets that left a queue onto a link), user CPU
// nanoseconds a packet-hop, and Gb/s of payload received.

#include "common.h"

#include "ns3/applications-module.h"

using namespace ns3;

namespace
{

constexpr uint32_t LEAVES = 9;
constexpr uint32_t HOSTS = 16;
constexpr uint32_t SPINES = 4;
constexpr uint16_t PORT = 5000;

/// 10.leaf.x.0/30, where the two leading bits of x name the spine that carries what is sent to this host.
std::string
HostNetwork(uint32_t leaf, uint32_t host)
{
    const uint32_t x = (host % SPINES) * 64 + host / SPINES;
    return "10." + std::to_string(leaf) + "." + std::to_string(x) + ".0";
}

struct Fabric
{
    NodeContainer hosts{LEAVES * HOSTS};
    NodeContainer leaves{LEAVES};
    NodeContainer spines{SPINES};
    std::vector<Ipv4Address> address;
    std::vector<Ptr<PointToPointNetDevice>> devices;

    Fabric()
    {
        InternetStackHelper stack;
        Ipv4StaticRoutingHelper routing;
        stack.SetRoutingHelper(routing);
        stack.InstallAll();
        for (uint32_t h = 0; h < LEAVES * HOSTS; ++h)
        {
            const uint32_t leaf = h / HOSTS;
            auto ends = Connect(hosts.Get(h), leaves.Get(leaf), 10, 65, HostNetwork(leaf, h % HOSTS));
            address.push_back(ends.GetAddress(0));
            routing.GetStaticRouting(hosts.Get(h)->GetObject<Ipv4>())->SetDefaultRoute(ends.GetAddress(1), 1);
        }
        for (uint32_t l = 0; l < LEAVES; ++l)
        {
            for (uint32_t s = 0; s < SPINES; ++s)
            {
                const auto net = "192." + std::to_string(l) + "." + std::to_string(s) + ".0";
                auto ends = Connect(leaves.Get(l), spines.Get(s), 40, 260, net);
                // Up: whatever the leaf does not know and whose address names this spine. Down: the leaf's hosts.
                const std::string match = "10.0." + std::to_string(s * 64) + ".0";
                auto leaf = leaves.Get(l)->GetObject<Ipv4>();
                routing.GetStaticRouting(leaf)->AddNetworkRouteTo(Ipv4Address(match.c_str()),
                                                                  Ipv4Mask("0.0.192.0"),
                                                                  ends.GetAddress(1),
                                                                  ends.Get(0).second);
                auto spine = spines.Get(s)->GetObject<Ipv4>();
                const std::string below = "10." + std::to_string(l) + ".0.0";
                routing.GetStaticRouting(spine)->AddNetworkRouteTo(Ipv4Address(below.c_str()),
                                                                   Ipv4Mask("255.255.0.0"),
                                                                   ends.GetAddress(0),
                                                                   ends.Get(1).second);
            }
        }
    }

    Ipv4InterfaceContainer Connect(Ptr<Node> a, Ptr<Node> b, uint32_t gbps, uint32_t k, const std::string& net)
    {
        PointToPointHelper link;
        link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(gbps * 1000000000ull)));
        link.SetChannelAttribute("Delay", TimeValue(MicroSeconds(2)));
        // All waiting happens in the queue discipline, which marks; the device holds one packet.
        link.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue("1p"));
        auto ends = link.Install(a, b);
        TrafficControlHelper marking;
        const QueueSize room(QueueSizeUnit::PACKETS, 30 * gbps);
        marking.SetRootQueueDisc("ns3::RedQueueDisc",
                                 "UseEcn",
                                 BooleanValue(true),
                                 "UseHardDrop",
                                 BooleanValue(false),
                                 "Gentle",
                                 BooleanValue(false),
                                 "QW",
                                 DoubleValue(1.0),
                                 "MinTh",
                                 DoubleValue(k),
                                 "MaxTh",
                                 DoubleValue(k),
                                 "MeanPktSize",
                                 UintegerValue(1500),
                                 "LinkBandwidth",
                                 DataRateValue(DataRate(gbps * 1000000000ull)),
                                 "MaxSize",
                                 QueueSizeValue(room));
        marking.Install(ends);
        for (uint32_t i = 0; i < ends.GetN(); ++i)
        {
            devices.push_back(DynamicCast<PointToPointNetDevice>(ends.Get(i)));
        }
        Ipv4AddressHelper addresses(Ipv4Address(net.c_str()), Ipv4Mask("255.255.255.252"));
        return addresses.Assign(ends);
    }

    uint64_t PacketHops() const
    {
        uint64_t hops = 0;
        for (const auto& device : devices)
        {
            auto queue = device->GetQueue();
            hops += queue->GetTotalReceivedPackets() - queue->GetNPackets();
        }
        return hops;
    }
};

} // namespace

int
main(int argc, char* argv[])
{
    std::string pairs;
    double ms = 1;
    CommandLine cmd(__FILE__);
    cmd.AddValue("pairs", "file of lines: source destination", pairs);
    cmd.AddValue("ms", "simulated milliseconds", ms);
    cmd.Parse(argc, argv);

    bench::ConfigureTcp(1448, 10, MicroSeconds(200));
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpDctcp::GetTypeId()));
    Fabric fabric;
    ApplicationContainer sinks;
    for (const auto& row : bench::ReadRows(pairs, 2))
    {
        const InetSocketAddress to(fabric.address.at(row[1]), PORT);
        BulkSendHelper source("ns3::TcpSocketFactory", to);
        source.SetAttribute("SendSize", UintegerValue(1448));
        source.Install(fabric.hosts.Get(row[0])).Start(Seconds(0));
        PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), PORT));
        sinks.Add(sink.Install(fabric.hosts.Get(row[1])));
    }
    sinks.Start(Seconds(0));
    Simulator::Stop(MicroSeconds(static_cast<uint64_t>(ms * 1000)));
    const double before = bench::UserSeconds();
    Simulator::Run();
    const double seconds = bench::UserSeconds() - before;
    uint64_t received = 0;
    for (uint32_t i = 0; i < sinks.GetN(); ++i)
    {
        received += DynamicCast<PacketSink>(sinks.Get(i))->GetTotalRx();
    }
    const uint64_t hops = fabric.PacketHops();
    std::cout << hops << " " << seconds * 1e9 / hops << " " << received * 8 / (ms * 1e6) << std::endl;
    Simulator::Destroy();
}
