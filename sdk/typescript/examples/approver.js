// Decides by a rule of its own: COUNTERSIGN_URL and COUNTERSIGN_KEY (role approver) say where and as whom.
import { CountersignClient, CountersignError } from "@countersign/sdk";

const gate = new CountersignClient({ url: process.env.COUNTERSIGN_URL, key: process.env.COUNTERSIGN_KEY });

async function decide({ approval_id, preview, risk }) {
  const decision = risk === "dangerous" ? { decision: "deny", note: "ask a person" } : { decision: "allow-once" };
  try {
    const record = await gate.decide(approval_id, decision);
    console.log(`${record.status}: ${preview}`);
  } catch (error) {
    // Somebody else was first, or its time was over: their answer stands.
    if (!(error instanceof CountersignError) || ![409, 410].includes(error.status)) throw error;
  }
}

// What waits already, each time the stream is open, and everything that comes; over restarts of the gate too.
async function decideWaiting() {
  const { approvals } = await gate.list({ status: "pending" });
  for (const approval of approvals) await decide(approval);
}
for await (const event of gate.events({ onOpen: decideWaiting })) {
  if (event.type === "requested" && event.approval?.status === "pending") await decide(event.approval);
}
