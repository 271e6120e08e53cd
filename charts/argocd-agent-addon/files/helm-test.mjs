// What `helm test` runs: asks each part whether it does its work, until all do or the time is over.
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect } from 'node:tls';

const { CONTROLLER_URL, METRICS_URL, PRINCIPAL_URL, PRINCIPAL_HOST, PRINCIPAL_PORT, CA_FOLDER, TIMEOUT_SECONDS } = process.env;
const deadline = Date.now() + Number(TIMEOUT_SECONDS) * 1000;

async function answersOk(url) {
  const response = await fetch(url, { signal: AbortSignal.timeout(5000) });
  const text = (await response.text()).trim();
  if (!response.ok) throw new Error(`${url} answers ${response.status}: ${text}`);
}

/** A TLS connection that ends in the principal's certificate, signed by the authority that agents trust, and HTTP/2. */
function serves() {
  const authorities = readdirSync(CA_FOLDER).filter((name) => name.endsWith('.crt'));
  if (authorities.length === 0) throw new Error('Secret argocd-agent-ca has no certificate yet');
  const ca = authorities.map((name) => readFileSync(`${CA_FOLDER}/${name}`));
  const options = { host: PRINCIPAL_HOST, port: Number(PRINCIPAL_PORT), servername: PRINCIPAL_HOST, ca };
  return new Promise((resolve, reject) => {
    const socket = connect({ ...options, ALPNProtocols: ['h2'] });
    socket.setTimeout(5000, () => socket.destroy(new Error(`${PRINCIPAL_HOST}:${PRINCIPAL_PORT} does not answer`)));
    socket.once('error', reject);
    socket.once('secureConnect', () => {
      socket.destroy();
      if (socket.alpnProtocol === 'h2') resolve();
      else reject(new Error(`${PRINCIPAL_HOST}:${PRINCIPAL_PORT} does not speak HTTP/2`));
    });
  });
}

/**
 * Prints the conditions of the GitOpsClusters that are not True. They fail no test: clusters come and go, and
 * HubArgoCDCompatible is about the hub's own Argo CD.
 */
async function warnOfConditions() {
  const response = await fetch(METRICS_URL, { signal: AbortSignal.timeout(5000) });
  if (!response.ok) throw new Error(`${METRICS_URL} answers ${response.status}`);
  const pattern = /^gitops_controller_condition\{namespace="([^"]*)",name="([^"]*)",type="([^"]*)",status="(False|Unknown)"\} 1$/gm;
  for (const [, namespace, name, type, status] of (await response.text()).matchAll(pattern)) {
    console.log(`warning: ${type} is ${status}: kubectl -n ${namespace} describe gitopsclusters ${name}`);
  }
}

const checks = { 'the controller is ready': () => answersOk(CONTROLLER_URL) };
if (PRINCIPAL_URL) {
  checks['the principal is healthy'] = () => answersOk(PRINCIPAL_URL);
  checks['the principal takes connections of agents'] = serves;
}

for (const [what, check] of Object.entries(checks)) {
  for (let problem; ; await sleep(1000)) {
    try {
      await check();
      console.log(`ok: ${what}`);
      break;
    } catch (error) {
      const said = error.cause?.message ? `${error.message} (${error.cause.message})` : error.message;
      if (said !== problem) console.log(`not yet: ${what}: ${said}`);
      problem = said;
      if (Date.now() > deadline) {
        console.log(`failed: ${what}`);
        process.exit(1);
      }
    }
  }
}

try {
  await warnOfConditions();
} catch (error) {
  console.log(`warning: the conditions of the GitOpsClusters cannot be read: ${error.message}`);
}
