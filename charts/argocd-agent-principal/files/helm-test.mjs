// What `helm test` runs: asks the principal whether it serves agents, until it is or the time is over.
import { setTimeout as sleep } from 'node:timers/promises';

const { HEALTHZ_URL, TIMEOUT_SECONDS } = process.env;
const deadline = Date.now() + Number(TIMEOUT_SECONDS) * 1000;

async function ask() {
  try {
    const response = await fetch(HEALTHZ_URL, { signal: AbortSignal.timeout(5000) });
    const text = (await response.text()).trim();
    return response.ok ? undefined : `${response.status} ${text}`;
  } catch (error) {
    return error.cause?.message ?? error.message;
  }
}

for (let problem; ; await sleep(1000)) {
  const said = await ask();
  if (said === undefined) break;
  if (said !== problem) console.log(`not yet: ${HEALTHZ_URL}: ${said}`);
  problem = said;
  if (Date.now() > deadline) {
    console.log('failed: the principal does not serve agents');
    process.exit(1);
  }
}
console.log('ok: the principal serves agents');
