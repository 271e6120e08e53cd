import { applyMergePatch } from '../../lib/base/index.ts';
import { configMaps, deployments, type KubeClient } from '../../lib/kube/index.ts';
import {
  type FleetApplication,
  FleetError,
  type FleetGitOpsCluster,
  fleetApplicationSets,
  fleetApplications,
  fleetGitOpsClusters,
  guestbookFiles,
  guestbookRepository,
  guestbookSet,
  guestbookValues,
  isSyncedAndHealthy,
  type SharedFleet,
  selectedClusters,
} from '../fleet/index.ts';
import { ocmManagedClusters } from '../ocm/index.ts';
import { KindRequirementError, type ProviderName } from '../provider/index.ts';
import { waitForObject, waitForObjects, watchObjects } from '../testbed/index.ts';
import { ToolError } from '../tools/index.ts';
import { type Background, goToBackground } from './detached.ts';
import { fleetPagePath } from './front-door.ts';
import { refreshOnCommit } from './git-webhook.ts';
import { leftClean } from './left-clean.ts';
import { showsLive } from './live-access.ts';
import { Progress, type WaitsFor } from './progress.ts';
import { type DemoFleet, providerOf } from './providers.ts';
import { RequirementError } from './requirements.ts';
import { makeTools } from './tools.ts';
import { whatToTry } from './try-next.ts';
import { versionsLine } from './versions.ts';

/** How the demo runs. */
export interface DemoOptions {
  /** Where the clusters come from. */
  provider: ProviderName;
  /** It ends by itself after its last step, or when it is interrupted. */
  until: 'done' | 'interrupted';
  /** It runs in the background for whoever started it. */
  detached: boolean;
  colour: boolean;
}

const argocd = 'argocd';

/** What the demo installs: the example's values, with the fleet page. */
const values = applyMergePatch(guestbookValues, {
  principal: { fleetPage: { enabled: true, path: fleetPagePath } },
}) as object;

const intro = `A hub and two managed clusters start on this machine, and \`helm install\` enrolls them. A commit, an edit on the hub and
a manual change go their way; a third cluster joins, and leaves. You can watch in a browser as soon as the chart is
installed, and the fleet is yours at the end.
`;

/** Runs the demo; the result is the process's exit code. */
export async function runDemo({ provider: name, until, detached, colour }: DemoOptions): Promise<number> {
  const interrupted = new AbortController();
  const { signal } = interrupted;
  const interrupt = () => {
    // Asked twice: at once. What was started dies with this process.
    if (signal.aborted) {
      process.exit(130);
    }
    process.stdout.write('\nStopping everything …\n');
    interrupted.abort(new Interrupted());
  };
  let demo: DemoFleet | undefined;
  const provider = providerOf(name);
  const background = detached
    ? await goToBackground(
        () => demo?.status?.(),
        () => signal.aborted || interrupt(),
      )
    : undefined;
  for (const signalName of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signalName, interrupt);
  }
  const crash = new AbortController();
  const crashed = (error: Error) => crash.abort(error);
  const steps = AbortSignal.any([signal, crash.signal]);
  const progress = new Progress({ colour });
  let code = 0;
  try {
    await provider.check(signal);
    process.stdout.write(intro);
    progress.chapter('Tools');
    const tools = makeTools(provider.tools, progress, signal);
    await provider.build?.();
    progress.chapter('A hub and two managed clusters');
    const step = <T>(what: string, part: () => Promise<T>) => progress.step(what, part);
    demo = await provider.start({ labels: selectedClusters, signal, crashed, step, need: tools.need });
    progress.say(await versionsLine(demo.fleet, demo.versions));
    await enroll(demo, progress, steps);
    const webhook = refreshOnCommit(demo.fleet, steps);
    webhook.catch(crashed);
    await live(demo, progress, steps);
    await comeAndGo(demo.fleet, progress, steps);
    process.stdout.write(`\n${progress.table()}\n`);
    if (until === 'interrupted') {
      await stay(demo, background, steps);
      crash.signal.throwIfAborted();
    }
  } catch (error) {
    code = signal.aborted && signal.reason instanceof Interrupted ? 130 : 1;
    if (code === 1) {
      await tellFailure(error, demo?.fleet);
    }
    if (code === 1 && demo && until === 'interrupted' && !detached) {
      process.stderr.write(
        `\nThe fleet is still up, with the logs of every process in ${demo.fleet.folder}; Ctrl-C ends it.\n`,
      );
      await untilAborted(signal);
    }
  }
  if (demo) {
    if (!signal.aborted) {
      process.stdout.write('\nStopping everything …\n');
    }
    await demo.stop();
  }
  await background?.close();
  return code;
}

class Interrupted extends Error {}

async function tellFailure(error: unknown, fleet: SharedFleet | undefined): Promise<void> {
  const isPlain = [ToolError, RequirementError, KindRequirementError, FleetError].some((kind) => error instanceof kind);
  const what = error instanceof Error ? (isPlain ? error.message : error.stack) : String(error);
  if (fleet) {
    process.stderr.write(`\n${await fleet.logs(20)}\n`);
  }
  process.stderr.write(`\nThe demo failed: ${what}\n`);
  if (what?.includes('too many open files')) {
    process.stderr.write(`\n${tooFewWatches}\n`);
  }
}

/** Kubernetes' programs say only that they cannot open one more file. */
const tooFewWatches =
  'The programs of the demo need about 60 inotify instances, and this machine has no more for this user. Allow more: ' +
  'sudo sysctl fs.inotify.max_user_instances=1024';

const clustersOf = (fleet: SharedFleet) => [fleet.hub, ...[...fleet.members.values()].map((member) => member.cluster)];

/** helm install, enrolment, and the first synchronisation. */
async function enroll({ fleet, doors }: DemoFleet, progress: Progress, signal: AbortSignal): Promise<void> {
  const { hub, git } = fleet;
  progress.chapter('helm install, enrolment');
  await git.commit(guestbookRepository, guestbookFiles('Hello'), 'A guestbook');
  const begin = performance.now();
  await progress.step('helm install argocd-agent-addon', () => fleet.install(values));
  await progress.step('controller and principal are available', (waitsFor) =>
    waitForObjects(hub.client, deployments, { signal }, (all) => {
      const ours = all.filter((d) => d.metadata.labels?.['app.kubernetes.io/instance'] === 'argocd-agent-addon');
      const missing = ours.filter((d) => (d.status?.availableReplicas ?? 0) === 0);
      waitsFor(missing.map((d) => `${d.metadata.name} is not available`).join(', ') || 'its Deployments to be made');
      return ours.length >= 2 && missing.length === 0;
    }),
  );
  for (const door of doors) {
    progress.say(door);
  }
  await progress.step('both clusters enrolled: certificates, works, Argo CD, agent connected', (waitsFor) =>
    waitForObjects(hub.client, fleetGitOpsClusters, { signal, timeoutMs: 180_000 }, ([gitOpsCluster]) => {
      waitsFor(readiness(gitOpsCluster));
      return gitOpsCluster?.status?.clusters?.connected === 2;
    }),
  );
  await hub.client.create(fleetApplicationSets, guestbookSet(git.url(guestbookRepository)));
  await progress.step(
    'an ApplicationSet over the Placement: two Applications Synced and Healthy on the hub',
    (waitsFor) =>
      waitForObjects(hub.client, fleetApplications, { namespace: argocd, signal, timeoutMs: 180_000 }, (all) => {
        waitsFor(all.length === 0 ? 'no Application yet' : all.map(state).join(', '));
        return all.length === 2 && all.every(isSyncedAndHealthy);
      }),
  );
  progress.measured('helm install to both Applications Synced and Healthy', performance.now() - begin);
}

/** What a user does all day, and how long it takes. */
async function live({ fleet, argoCd }: DemoFleet, progress: Progress, signal: AbortSignal): Promise<void> {
  const { hub, git } = fleet;
  const [member] = fleet.members.values();
  if (!member) {
    throw new Error('the fleet has no managed cluster');
  }
  const { client, name } = member.cluster;
  const app = { namespace: argocd, name: `guestbook-${name}` };
  progress.chapter('Live');

  const revision = await git.commit(guestbookRepository, guestbookFiles('Hello again'), 'Another greeting');
  await progress.step('a commit is refreshed from the hub, synced on the cluster and reported back', async () => {
    await greetingBecomes(client, 'Hello again', signal);
    await waitForObject(
      hub.client,
      fleetApplications,
      app,
      (a) => a?.status?.sync?.revision === revision && isSyncedAndHealthy(a),
      { signal },
    );
  });

  await measure(progress, 'an edit of the hub Application is on the managed cluster', {
    client,
    app,
    signal,
    act: () =>
      hub.client.mergePatch(fleetApplications, app, { spec: { info: [{ name: 'edited', value: 'on the hub' }] } }),
    accept: (a) => JSON.stringify(a?.spec?.info)?.includes('on the hub') ?? false,
  });
  await measure(progress, 'a manual edit on the managed cluster is reverted', {
    client,
    app,
    signal,
    act: () => client.mergePatch(fleetApplications, app, { spec: { project: 'elsewhere' } }),
    // The watch may not have seen the edit yet: what counts is what came after it.
    accept: (a, edited) =>
      a?.spec?.project === 'default' && (a.metadata.generation ?? 0) > (edited.metadata.generation ?? 0),
  });
  await measure(progress, 'an Application deleted on the managed cluster is back', {
    client,
    app,
    signal,
    act: async () => {
      const before = await client.get(fleetApplications, app);
      await client.delete(fleetApplications, app);
      return before?.metadata.uid;
    },
    accept: (a, uid) => a !== undefined && a.metadata.uid !== uid && !a.metadata.deletionTimestamp,
  });
  await progress.step('it is Synced and Healthy again', (waitsFor) => deployed(hub.client, app, waitsFor, { signal }));
  if (argoCd) {
    await showsLive(argoCd, { app: app.name, cluster: name, client }, progress, signal);
  }
}

/** The clock runs from before the act to the watch event that shows its effect; the watch is open before. */
async function measure<T>(
  progress: Progress,
  what: string,
  options: {
    client: KubeClient;
    app: { namespace: string; name: string };
    signal: AbortSignal;
    act: () => Promise<T>;
    accept: (application: FleetApplication | undefined, acted: T) => boolean;
  },
): Promise<void> {
  const { client, app: key, signal, act, accept } = options;
  const watched = await watchObjects(client, fleetApplications, { key, signal });
  const begin = performance.now();
  const acted = await act();
  await watched.until(([application]) => accept(application, acted));
  progress.measured(what, performance.now() - begin);
  await watched.stop();
}

/** A third cluster joins; one leaves the Placement. */
async function comeAndGo(fleet: SharedFleet, progress: Progress, signal: AbortSignal): Promise<void> {
  const { hub } = fleet;
  progress.chapter('Clusters come and go');
  const member = await progress.step('a third cluster starts and is registered', () =>
    fleet.join('cluster3', selectedClusters),
  );
  const app = { namespace: argocd, name: 'guestbook-cluster3' };
  await progress.step(
    'it is enrolled and its Application Synced and Healthy, without anyone doing anything',
    (waitsFor) => deployed(hub.client, app, waitsFor, { signal, timeoutMs: 180_000 }),
  );
  await hub.client.mergePatch(
    ocmManagedClusters,
    { name: 'cluster3' },
    { metadata: { labels: { 'fleet.example.com/demo': null } } },
  );
  await progress.step('it leaves the Placement and is left clean', (waitsFor) =>
    leftClean(hub.client, member.cluster, app, waitsFor, signal),
  );
}

/** Says what the fleet is good for now, and waits for its end. */
async function stay(
  { fleet, doors }: DemoFleet,
  background: Background | undefined,
  signal: AbortSignal,
): Promise<void> {
  const suggestions = await whatToTry(fleet);
  const clusters = clustersOf(fleet).sort((one, other) => one.name.localeCompare(other.name));
  const width = Math.max(...clusters.map(({ name }) => name.length));
  process.stdout.write(`
The fleet is up.

${doors.join('\n')}

Kubeconfigs, for programs of yours:
${clusters.map(({ name, kubeconfig }) => `  ${name.padEnd(width)}  ${kubeconfig}`).join('\n')}

Try next, in another terminal:
${suggestions.map(({ what, command }) => `\n  ${what}\n    ${command}\n`).join('')}
${background ? 'It runs in the background. End it: npm run demo -- --down' : 'Ctrl-C stops everything.'}
`);
  background?.ready();
  await untilAborted(signal);
}

async function untilAborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) {
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
  }
}

/** What the GitOpsCluster says of itself. */
function readiness(gitOpsCluster: FleetGitOpsCluster | undefined): string {
  const ready = gitOpsCluster?.status?.conditions?.find((condition) => condition.type === 'Ready');
  return ready?.message ?? 'the GitOpsCluster has no Ready condition yet';
}

/** An Application's state, as Argo CD shows it. */
function state({ metadata, status }: FleetApplication): string {
  return `${metadata.name} is ${status?.sync?.status || 'not synced'}/${status?.health?.status || 'unknown'}`;
}

/** The Application is Synced and Healthy on the hub. */
function deployed(
  hub: KubeClient,
  app: { namespace: string; name: string },
  waitsFor: WaitsFor,
  wait: { signal: AbortSignal; timeoutMs?: number },
): Promise<unknown> {
  const accept = (application: FleetApplication | undefined) => {
    waitsFor(application ? state(application) : `${app.name} is not there yet`);
    return isSyncedAndHealthy(application);
  };
  return waitForObject(hub, fleetApplications, app, accept, wait);
}

function greetingBecomes(client: KubeClient, text: string, signal: AbortSignal) {
  return waitForObject(
    client,
    configMaps,
    { namespace: guestbookRepository, name: 'greeting' },
    (c) => c?.data?.text === text,
    {
      signal,
    },
  );
}
