import { wellKnown } from '../../lib/base/index.ts';

const listOf = (text: string): ReadonlySet<string> => new Set(text.trim().split(/\s+/));

/**
 * Fields of objects that a supporter sees, at any depth below others of them: names, kinds, addresses, versions, states, times and
 * messages. Whatever a user may fill freely is not among them: Helm values and parameters, Kustomize patches, environments and
 * plug-ins of sources, manifests of operations, arguments and environments of containers, data of ConfigMaps, annotations.
 */
export const shownFields: ReadonlySet<string> = listOf(`
  apiVersion kind metadata spec status
  name generateName namespace uid resourceVersion generation creationTimestamp deletionTimestamp finalizers ownerReferences
  conditions type reason message note lastTransitionTime lastUpdateTime lastHeartbeatTime observedGeneration observedAt

  project destination server source sources repoURL path chart targetRevision ref sourceHydrator drySource syncSource targetBranch
  syncPolicy automated retry backoff duration maxDuration operation sync syncStrategy hook apply initiatedBy
  revision revisions comparedTo health history deployedAt deployStartedAt operationState phase startedAt finishedAt syncResult
  resources group version hookPhase hookType syncPhase reconciledAt sourceType sourceTypes summary images controllerNamespace
  resourceHealthSource

  sourceRepos sourceNamespaces destinations clusterResourceWhitelist clusterResourceBlacklist namespaceResourceWhitelist
  namespaceResourceBlacklist roles syncWindows schedule timeZone applications namespaces clusters destinationServiceAccounts
  defaultServiceAccount

  selector template containers initContainers ephemeralContainers image imagePullPolicy imageID ports protocol targetPort
  containerPort limits requests cpu memory ephemeral-storage env valueFrom secretKeyRef configMapKeyRef fieldRef fieldPath key
  envFrom secretRef configMapRef volumeMounts mountPath volumes secret secretName configMap persistentVolumeClaim claimName
  projected items serviceAccount serviceAccountName nodeName restartPolicy securityContext seccompProfile capabilities drop add
  livenessProbe readinessProbe startupProbe httpGet tcpSocket port scheme strategy
  containerStatuses initContainerStatuses state lastState running waiting terminated hostIP hostIPs podIP podIPs ip qosClass startTime

  clusterIP clusterIPs externalIPs externalName loadBalancer loadBalancerIP ingress hostname ipFamilies ipFamilyPolicy
  internalTrafficPolicy externalTrafficPolicy sessionAffinity addressType endpoints addresses targetRef zone
  holderIdentity renewTime acquireTime
  involvedObject regarding related action firstTimestamp lastTimestamp eventTime reportingComponent reportingController
  reportingInstance component host series lastObservedTime
  rules apiGroups apiGroup resourceNames verbs roleRef subjects
  podSelector namespaceSelector policyTypes egress from to ipBlock cidr except

  placementRef argoCDAgentAddon argoCDServerAddOn mode agentNamespace operatorNamespace principalServerAddress principalServerPort
  argoCD clientCertificate liveAccess rolloutStrategy installNamespace addOnConfiguration configReferences desiredConfig
  lastAppliedConfig lastObservedConfig specHash registrations signerName supportedConfigs healthCheck relatedObjects
`);

/** Maps of short texts that tell objects apart. */
export const shownMaps: ReadonlySet<string> = listOf('labels matchLabels nodeSelector');

/** Annotations that say where an object comes from. */
export const shownAnnotations: ReadonlySet<string> = new Set([
  wellKnown.trackingAnnotation,
  wellKnown.skipReconcileAnnotation,
  ...listOf(`
    argocd.argoproj.io/source-uid argocd.argoproj.io/principal-uid argocd.argoproj.io/namespace-remapped
    argocd.argoproj.io/refresh argocd-agent.argoproj.io/last-updated argocd-agent.argoproj-labs.io/mirror-of
    argocd-agent.argoproj-labs.io/hub-role argocd-agent.argoproj-labs.io/reported-operation`),
]);
