// Completion times of TCP NewReno, DCTCP or CUBIC flows over a star of hosts in ns-3.
//
//   fct --flows=FILE [--hosts=9] [--gbps=10] [--delayNs=2000] [--bufferBytes=150000] [--mss=1460] [--window=10]
//       [--rtoMinNs=200000] [--tcp=newreno|dctcp|cubic] [--k=65] [--targetUs=5000] [--intervalUs=100000]
//
// Under CUBIC every link has FqCoDel, and slow start ends with a loss (no HyStart). Under DCTCP every link has a RED queue that marks beyond k packets at 10 Gb/s, in proportion at other rates.
//
// FILE has a line "start_ns source destination bytes" a flow. Connections are set up a second before their flows start,
// so that a flow's time is that of its bytes alone: from its start until the last byte has arrived. Prints one time
// in ns a flow, in the order of the file (0: not finished).

#include "common.h"

#include <memory>

using namespace ns3;

namespace
{

constexpr uint16_t FIRST_PORT = 1000;
const Time BEFORE = Seconds(1);

/// One flow: its two sockets and what has arrived.
class Transfer
{
  public:
    Transfer(Ptr<Node> from, Ptr<Node> to, Ipv4Address address, uint16_t port, Time start, uint64_t bytes)
        : m_left(bytes),
          m_missing(bytes),
          m_start(start)
    {
        m_listener = Socket::CreateSocket(to, TcpSocketFactory::GetTypeId());
        m_listener->Bind(InetSocketAddress(Ipv4Address::GetAny(), port));
        m_listener->Listen();
        m_listener->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(),
                                      MakeCallback(&Transfer::Accept, this));
        m_sender = Socket::CreateSocket(from, TcpSocketFactory::GetTypeId());
        m_sender->Bind();
        // Queue disciplines are there once the simulation has begun; one by one, so that no queue drops a SYN.
        const Time turn = MilliSeconds(1) + MicroSeconds(100) * (port - FIRST_PORT);
        Simulator::Schedule(turn, &Transfer::Connect, this, InetSocketAddress(address, port));
        m_sender->SetSendCallback(MakeCallback(&Transfer::Room, this));
        Simulator::Schedule(start, &Transfer::Begin, this);
    }

    uint64_t FctNs() const
    {
        return m_missing == 0 ? (m_end - m_start).GetNanoSeconds() : 0;
    }

  private:
    void Connect(InetSocketAddress to)
    {
        m_sender->Connect(to);
    }

    void Accept(Ptr<Socket> socket, const Address&)
    {
        m_receiver = socket;
        socket->SetRecvCallback(MakeCallback(&Transfer::Receive, this));
    }

    void Begin()
    {
        m_begun = true;
        Write();
    }

    void Room(Ptr<Socket>, uint32_t)
    {
        Write();
    }

    void Write()
    {
        while (m_begun && m_left > 0)
        {
            const uint32_t some = std::min<uint64_t>({m_left, m_sender->GetTxAvailable(), 1u << 20});
            if (some == 0 || m_sender->Send(Create<Packet>(some)) <= 0)
            {
                return;
            }
            m_left -= some;
        }
    }

    void Receive(Ptr<Socket> socket)
    {
        while (auto packet = socket->Recv())
        {
            if (packet->GetSize() == 0)
            {
                return;
            }
            m_missing -= packet->GetSize();
            m_end = Simulator::Now();
        }
    }

    Ptr<Socket> m_listener;
    Ptr<Socket> m_sender;
    Ptr<Socket> m_receiver;
    uint64_t m_left;
    uint64_t m_missing;
    bool m_begun = false;
    Time m_start;
    Time m_end;
};

} // namespace

int
main(int argc, char* argv[])
{
    std::string flows;
    uint32_t hosts = 9;
    double gbps = 10;
    uint32_t delayNs = 2000;
    uint32_t bufferBytes = 150000;
    uint32_t mss = 1460;
    uint32_t window = 10;
    uint32_t rtoMinNs = 200000;
    std::string tcp = "newreno";
    double k = 65;
    double targetUs = 5000;
    double intervalUs = 100000;
    CommandLine cmd(__FILE__);
    cmd.AddValue("flows", "file of lines: start_ns source destination bytes", flows);
    cmd.AddValue("hosts", "hosts around the switch", hosts);
    cmd.AddValue("gbps", "rate of every link", gbps);
    cmd.AddValue("delayNs", "delay of every link", delayNs);
    cmd.AddValue("bufferBytes", "room before every link", bufferBytes);
    cmd.AddValue("mss", "payload of a full packet", mss);
    cmd.AddValue("window", "initial window, packets", window);
    cmd.AddValue("rtoMinNs", "smallest retransmission timeout", rtoMinNs);
    cmd.AddValue("tcp", "newreno, dctcp or cubic", tcp);
    cmd.AddValue("k", "marking threshold at 10 Gb/s, packets", k);
    cmd.AddValue("targetUs", "FqCoDel's target", targetUs);
    cmd.AddValue("intervalUs", "FqCoDel's interval", intervalUs);
    cmd.Parse(argc, argv);
    NS_ABORT_MSG_UNLESS(tcp == "newreno" || tcp == "dctcp" || tcp == "cubic",
                        "tcp is newreno, dctcp or cubic, not " << tcp);
    const bool marks = tcp == "dctcp";
    const bool fair = tcp == "cubic";
    const bool disciplined = marks || fair;

    bench::ConfigureTcp(mss, window, NanoSeconds(rtoMinNs));
    const TypeId type = marks ? TcpDctcp::GetTypeId() : fair ? TcpCubic::GetTypeId() : TcpNewReno::GetTypeId();
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(type));
    Config::SetDefault("ns3::TcpCubic::HyStart", BooleanValue(false));
    NodeContainer ends(hosts);
    NodeContainer hub(1);
    InternetStackHelper stack;
    stack.InstallAll();
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(static_cast<uint64_t>(gbps * 1e9))));
    link.SetChannelAttribute("Delay", TimeValue(NanoSeconds(delayNs)));
    // Where there is a queue discipline, all waiting happens in it; the device holds one packet.
    link.SetQueue("ns3::DropTailQueue<Packet>",
                  "MaxSize",
                  QueueSizeValue(disciplined ? QueueSize("1p") : QueueSize(QueueSizeUnit::BYTES, bufferBytes)));
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
    TrafficControlHelper none;
    TrafficControlHelper marking;
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
                             DoubleValue(k * gbps / 10),
                             "MaxTh",
                             DoubleValue(k * gbps / 10),
                             "MeanPktSize",
                             UintegerValue(1500),
                             "LinkBandwidth",
                             DataRateValue(DataRate(static_cast<uint64_t>(gbps * 1e9))),
                             "MaxSize",
                             QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, bufferBytes / (mss + 42))));
    TrafficControlHelper fairly;
    fairly.SetRootQueueDisc("ns3::FqCoDelQueueDisc",
                            "UseEcn",
                            BooleanValue(false),
                            "Target",
                            StringValue(std::to_string(targetUs) + "us"),
                            "Interval",
                            StringValue(std::to_string(intervalUs) + "us"),
                            "DropBatchSize",
                            UintegerValue(1),
                            "MaxSize",
                            QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, bufferBytes / (mss + 42))));
    std::vector<Ipv4Address> address;
    for (uint32_t h = 0; h < hosts; ++h)
    {
        auto devices = link.Install(ends.Get(h), hub.Get(0));
        if (marks)
        {
            marking.Install(devices);
        }
        if (fair)
        {
            fairly.Install(devices);
        }
        address.push_back(addresses.Assign(devices).GetAddress(0));
        addresses.NewNetwork();
        if (!disciplined)
        {
            none.Uninstall(devices);
        }
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    std::vector<std::unique_ptr<Transfer>> transfers;
    for (const auto& row : bench::ReadRows(flows, 4))
    {
        const uint16_t port = FIRST_PORT + transfers.size();
        const Time start = BEFORE + NanoSeconds(row[0]);
        transfers.push_back(std::make_unique<Transfer>(ends.Get(row[1]),
                                                       ends.Get(row[2]),
                                                       address.at(row[2]),
                                                       port,
                                                       start,
                                                       row[3]));
    }
    Simulator::Stop(BEFORE + Seconds(10));
    Simulator::Run();
    for (const auto& transfer : transfers)
    {
        std::cout << transfer->FctNs() << "\n";
    }
    Simulator::Destroy();
}
