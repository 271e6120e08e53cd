/**
 * Labels, annotations and names that Argo CD and argocd-agent share with everybody, and that more than one room uses. What
 * only one room uses stands there.
 */
export const wellKnown = {
  /** Argo CD's label on Secrets: `cluster`, `repository`, `repo-creds` ... */
  secretTypeLabel: 'argocd.argoproj.io/secret-type',
  /** argocd-agent's label on a cluster Secret: the name of the agent. */
  agentNameLabel: 'argocd-agent.argoproj-labs.io/agent-name',
  /** On a cluster Secret: the mode that its agent must have; the principal refuses another one. */
  agentModeAnnotation: 'argocd-agent.argoproj-labs.io/agent-mode',
  /** On the Lease of an agent's connection: `true` or `false`. */
  connectedAnnotation: 'argocd-agent.argoproj-labs.io/connected',
  /** On the Lease of an agent's connection: the agent's version. */
  agentVersionAnnotation: 'argocd-agent.argoproj-labs.io/agent-version',
  /** argocd-agent's label whose exact value `true` keeps an object out of all synchronisation. */
  ignoreSyncLabel: 'argocd-agent.argoproj-labs.io/ignore-sync',
  /** Argo CD's annotation on Applications (2.7) and cluster Secrets (3.4): `true` stops its application controller. */
  skipReconcileAnnotation: 'argocd.argoproj.io/skip-reconcile',
  /** Argo CD's annotation on an object: the Application that it is a part of, which may prune it. */
  trackingAnnotation: 'argocd.argoproj.io/tracking-id',
  /** Kubernetes' label for one installation of a program; with label tracking, Argo CD's for the Application of an object. */
  instanceLabel: 'app.kubernetes.io/instance',
  /** Kubernetes' label for the program that owns an object. */
  managedByLabel: 'app.kubernetes.io/managed-by',
  /** Kubernetes' label for the application that an object is part of. */
  partOfLabel: 'app.kubernetes.io/part-of',
  /** Argo CD's ConfigMap of GnuPG public keys. */
  gpgKeysConfigMap: 'argocd-gpg-keys-cm',
} as const;
