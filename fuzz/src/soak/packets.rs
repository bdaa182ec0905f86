//! Soak test of the packet simulator: any scheme on any network with any faults.

use super::CaseResult;
use super::books::{Books, Clerk, OfFlow};
use super::draw::Draw;
use super::scenes::RandomScene;
use crate::hold;
use subak_core::backend::{Backend, FlowView, Impairment, Injected};
use subak_core::{FlowId, LinkId, Ns};

/// Number of events after which a case is stopped.
const MOST_EVENTS: u64 = 1_500_000;
/// Time by which flows must be done, ns: backed-off RTOs take seconds each.
const END_NS: Ns = 2_000_000_000_000;
/// Additional time in which all timers set before the end of the last flow expire, ns.
const AFTER_NS: Ns = 200_000_000_000;

/// Bytes of control frames that may be in transmission when a run ends.
const MOST_LETTERS_BYTES: f64 = 1000.0;

/// Result of a run.
#[derive(Debug, Clone, PartialEq)]
struct Came {
    views: Vec<FlowView>,
    events: u64,
    hops: u64,
    end_ns: Ns,
    cut: bool,
    /// Received bytes of each flow at half of the time limit.
    halfway: Option<Vec<u64>>,
}

/// Draws random inputs, simulates them twice, and checks both runs. The accounts ignore the event numbered `blind`.
pub fn case(draw: &mut Draw, blind: Option<u64>) -> Result<CaseResult, String> {
    let scene = RandomScene::draw(draw)?;
    let about = format!("{} {}", scene.scheme, serde_json::Value::Object(scene.params.clone()));
    let said = |what: String| format!("{about}: {what}");
    let may_double =
        scene.faults.iter().any(|f| matches!(f, Injected::Packets { impairment: Impairment::Doubled, .. }));
    let books = Books::new(may_double, blind);
    let Some(mut sim) = started(&scene, draw.seed, 1, Some(Clerk(books.clone())))? else {
        return Ok(CaseResult::Refused);
    };
    let came = ran(&mut *sim, &scene, &mut None);
    let books = books.lock().map_err(|_| "the books are lost")?;
    books.check(&*sim, scene.network.links().ids()).map_err(said)?;
    check_links(&*sim, &scene).map_err(said)?;
    for (flow, view) in came.views.iter().enumerate() {
        let id = FlowId::from_index(flow);
        let mine = books.flows.get(&Some(id)).copied().unwrap_or_default();
        check_flow(&scene, flow, view, &mine, &came).map_err(|what| said(format!("flow {flow}: {what}")))?;
    }
    drop(books);
    forgets(&scene, draw.seed, &came).map_err(said)?;
    Ok(if came.cut { CaseResult::Cut } else { CaseResult::Whole })
}

/// A simulation with its flows; `None` if the inputs are refused with an error that names a place.
fn started(
    scene: &RandomScene,
    seed: u64,
    threads: usize,
    clerk: Option<Clerk>,
) -> Result<Option<Box<dyn Backend>>, String> {
    let RandomScene { scheme, params, network, sizes, faults, .. } = scene;
    let built = subak_packet::build_on(threads, scheme, params, network, *sizes, faults, seed);
    let mut sim = match built {
        Ok(sim) => sim,
        Err(fault) => {
            hold!(!fault.what.is_empty() && !fault.hint.is_empty(), "an error that says nothing: {fault:?}");
            return Ok(None);
        }
    };
    // A controller sends its first messages when it is placed: the watcher must be there before.
    clerk.into_iter().for_each(|clerk| sim.watch(Box::new(clerk)));
    sim.place_controller(&scene.ways);
    Ok(Some(sim))
}

/// Final views of flows that were removed after their end.
type Forgotten = Vec<(FlowId, FlowView)>;

/// Runs the simulation until its flows are done. With `forgotten`, flows are removed once they have ended, and their
/// final views stored there.
fn ran(sim: &mut dyn Backend, scene: &RandomScene, forgotten: &mut Option<Forgotten>) -> Came {
    let flows: Vec<FlowId> = scene.plans.iter().map(|plan| sim.add(plan.clone())).collect();
    let begun_ns = 2 * scene.until_ns;
    let (mut slice_ns, mut halfway) = ((scene.until_ns / 20).max(1), None);
    while sim.now_ns() < END_NS && sim.events() < MOST_EVENTS {
        let (events, until_ns) = (sim.events(), sim.now_ns() + slice_ns);
        // First until all flows have started and all faults are over, then until the last flow ends.
        match sim.now_ns() < begun_ns {
            true => sim.run_until(until_ns),
            false => sim.run_until_done(until_ns),
        }
        forgotten.iter_mut().for_each(|all| all.extend(sim.forget()));
        if sim.now_ns() >= begun_ns && sim.open_flows() == 0 {
            break;
        }
        if halfway.is_none() && sim.now_ns() > END_NS / 2 {
            halfway = Some(flows.iter().map(|&f| sim.flow(f).received_bytes).collect());
        }
        slice_ns = (slice_ns * if sim.events() - events < 1000 { 2 } else { 1 }).min(END_NS / 8);
    }
    let views = flows.iter().map(|&f| sim.flow(f)).collect();
    let cut = sim.events() >= MOST_EVENTS;
    Came { views, events: sim.events(), hops: sim.packet_hops(), end_ns: sim.now_ns(), cut, halfway }
}

/// Checks that no link carried more than its capacity.
fn check_links(sim: &dyn Backend, scene: &RandomScene) -> Result<(), String> {
    // Whole-nanosecond times make links faster, by 0.5 ns per packet.
    let whole = scene.params.get("clock").is_some_and(|clock| clock == "whole-ns");
    for (l, link) in scene.network.links().iter_enumerated() {
        let view = sim.link(l);
        let fastest_bps = fastest(scene, l, link.capacity_bps);
        let sent = (view.data_bytes + view.ack_bytes + view.ctl_bytes) as f64;
        let most = fastest_bps / 8e9 * sim.now_ns() as f64 * if whole { 1.5 } else { 1.0 + 1e-9 } + 1.0;
        // Control frames are counted when their transmission begins.
        hold!(
            sent <= most + MOST_LETTERS_BYTES && (view.data_bytes + view.ack_bytes) as f64 <= most,
            "link {l} carried {sent} bytes in {} ns at {fastest_bps} bit/s",
            sim.now_ns()
        );
    }
    Ok(())
}

/// Largest capacity of a link at any time, bit/s.
fn fastest(scene: &RandomScene, l: LinkId, capacity_bps: f64) -> f64 {
    let changed = scene.faults.iter().filter_map(|fault| match fault {
        Injected::Capacity { link, capacity_bps, .. } if *link == l => Some(*capacity_bps),
        _ => None,
    });
    changed.fold(capacity_bps, f64::max)
}

fn check_flow(scene: &RandomScene, flow: usize, view: &FlowView, mine: &OfFlow, came: &Came) -> Result<(), String> {
    let plan = &scene.plans[flow];
    let size = plan.size_bytes.unwrap_or(u64::MAX);
    let (sent, received) = (view.sent_bytes, view.received_bytes);
    hold!(received <= sent && sent <= size, "{received} bytes received of {sent} sent of {size}");
    if view.finished_ns.is_some() {
        hold!(received == size, "it is finished with {received} of {size} bytes");
    }
    hold!(view.finished_ns.is_none_or(|at| at >= plan.start_ns), "it ended before it began");
    let arrived = received + view.duplicate_bytes;
    hold!(arrived <= mine.delivered_bytes, "{arrived} bytes arrived of {} delivered", mine.delivered_bytes);
    let dropped = |kind: usize| mine.dropped[kind] + mine.lost[kind];
    let (drops, ctl_drops) = (view.drops, view.ctl_drops);
    hold!(drops == dropped(0), "it says {drops} data packets were dropped or lost, {} were", dropped(0));
    hold!(ctl_drops == dropped(2), "it says {ctl_drops} messages were dropped or lost, {} were", dropped(2));
    hold!(view.retransmissions <= mine.launched[0], "{} sent again of {:?}", view.retransmissions, mine.launched);
    if view.finished_ns.is_none() && plan.stop_ns.is_none() {
        // A window of a hundredth of a packet takes hours, but is not a deadlock.
        let before = came.halfway.as_ref().map(|bytes| bytes[flow]);
        hold!(before.is_none_or(|bytes| bytes < received), "it stands still: {view:?}");
        hold!(came.cut || before.is_some(), "it never finishes: {view:?}");
    }
    Ok(())
}

/// Runs the simulation again without a watcher, on several threads, and with flows removed after their end. No state
/// of a removed flow may remain, and nothing else may change.
fn forgets(scene: &RandomScene, seed: u64, came: &Came) -> Result<(), String> {
    let mut sim = started(scene, seed, 1 + seed as usize % 4, None)?.ok_or("it was refused the second time")?;
    let mut forgotten = Some(Vec::new());
    let again = ran(&mut *sim, scene, &mut forgotten);
    let mut forgotten = forgotten.unwrap_or_default();
    let same = (again.events, again.hops, again.end_ns) == (came.events, came.hops, came.end_ns);
    hold!(same, "the same seed gives another run: {} events and {}", came.events, again.events);
    for (flow, view) in &forgotten {
        let before = came.views[flow.index()];
        let same = FlowView { assigned_bps: 0.0, ..before } == FlowView { assigned_bps: 0.0, ..*view };
        hold!(same, "flow {flow}: forgetting changes {before:?} to {view:?}");
    }
    let (end_ns, end_events, mut slice_ns) = (sim.now_ns() + AFTER_NS, sim.events() + MOST_EVENTS, 1_000_000);
    // A flow that takes hours does not end.
    let ends = came.halfway.is_none() && !came.cut;
    while forgotten.len() < scene.plans.len() && ends {
        if sim.now_ns() >= end_ns {
            let gone = |flow: &usize| forgotten.iter().any(|(f, _)| f.index() == *flow);
            let kept: Vec<usize> = (0..scene.plans.len()).filter(|flow| !gone(flow)).collect();
            let views: Vec<_> = kept.iter().map(|&flow| sim.flow(FlowId::from_index(flow))).collect();
            return Err(format!("something of the flows {kept:?} is on its way for good: {views:?}"));
        }
        if sim.events() > end_events {
            break;
        }
        sim.run_until(sim.now_ns() + slice_ns);
        forgotten.extend(sim.forget());
        slice_ns += slice_ns / 2;
    }
    Ok(())
}
