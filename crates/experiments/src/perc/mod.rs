//! The PERC thesis' experiments that no spec expresses: control messages alone on the round-based backend, and the
//! structure of water-filling.

mod traces;

experiments![fig1_3, fig2_3, fig3_2, fig3_4, fig3_5, fig4_5, wfk, rounds, drops];
