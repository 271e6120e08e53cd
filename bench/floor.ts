/*
 * The floor that a synchronisation between two API servers can be held against: a process with one watch on each side,
 * which writes every change it sees to the other side and does nothing else. It is started with two kubeconfigs and the
 * namespace on either side, and says "ready" when both watches are open.
 */
import { Informer, KubeClient, type KubeObject, resourceType } from '../lib/kube/index.ts';

interface Application extends KubeObject {
  spec: unknown;
  status?: unknown;
}

const applications = resourceType<Application>({
  group: 'argoproj.io',
  version: 'v1alpha1',
  kind: 'Application',
  plural: 'applications',
  namespaced: true,
});
const [hubConfig = '', managedConfig = '', namespace = ''] = process.argv.slice(2);
const hub = KubeClient.fromKubeconfig(hubConfig);
const managed = KubeClient.fromKubeconfig(managedConfig);
const ended = new AbortController();
process.once('SIGTERM', () => ended.abort());

const sources = new Informer({ client: hub, type: applications, namespace });
const copies = new Informer({ client: managed, type: applications, namespace });
const fail = (error: unknown) => {
  process.stderr.write(`${error}\n`);
  process.exit(1);
};
sources.subscribe({
  added: ({ metadata: { name }, spec }) => {
    managed.create(applications, { metadata: { namespace, name }, spec }).catch(fail);
  },
  updated: (old, { metadata: { name }, spec }) => {
    if (JSON.stringify(old.spec) === JSON.stringify(spec)) {
      return;
    }
    managed.mergePatch(applications, { namespace, name }, { spec }).catch(fail);
  },
});
copies.subscribe({
  updated: (old, { metadata: { name }, status }) => {
    if (JSON.stringify(old.status) === JSON.stringify(status)) {
      return;
    }
    hub.mergePatch(applications, { namespace, name }, { status }).catch(fail);
  },
});
const running = [sources.run(ended.signal), copies.run(ended.signal)];
await Promise.all([sources.synced(), copies.synced()]);
process.stdout.write('ready\n');
await Promise.allSettled(running);
process.exit(0);
