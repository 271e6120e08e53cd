export { admissionPolicies, admissionPolicyBindings } from './admission-policies.ts';
export { isProcessAlive } from './alive.ts';
export { borrowCluster, servePool } from './borrow.ts';
export {
  type Cluster,
  type ClusterOptions,
  type KubeconfigIdentity,
  type SharedCluster,
  startCluster,
} from './cluster.ts';
export { ClusterPool } from './cluster-pool.ts';
export { Component } from './component.ts';
export {
  AlreadyRunningError,
  callTestbed,
  controlSocket,
  listenForControl,
  type TestbedStatus,
  testbedStatus,
} from './control.ts';
export { removeFolder, workFolder } from './folders.ts';
export { kubeconfigText } from './kubeconfig.ts';
export { createOnce, persist } from './persist.ts';
export { Authority, type CertificateSubject, type ClusterKeyPair } from './pki.ts';
export { freePort } from './ports.ts';
export { type ProcessExit, SpawnError, type SpawnOptions, type SupervisedProcess, spawnSupervised } from './process.ts';
export { Program } from './program.ts';
export { playKubelet } from './stand-in-kubelet.ts';
export { saveStorage } from './storage.ts';
export { spawnTalker, type TalkerOptions } from './talker.ts';
export { startTestbed, type Testbed, type TestbedOptions } from './testbed.ts';
export { type Watched, type WatchOptions, waitForObject, waitForObjects, watchObjects } from './wait.ts';
