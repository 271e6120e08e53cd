/** Series of metrics by their text, each with its values over time, one a minute, in promtool's notation. */
export type Series = Readonly<Record<string, string>>;

/** For how long everything is well, then not, then well again, minutes. */
export const phases = { well: 60, fault: 90, after: 90 } as const;

const steps = (well: string, fault: string, after: string) =>
  `${well}x${phases.well - 1} ${fault}x${phases.fault - 1} ${after}x${phases.after - 1}`;

/** A value that is another one during the fault. */
const gauge = (well: number, fault: number) => steps(`${well}+0`, `${fault}+0`, `${well}+0`);
/** A metric that is not there during the fault. */
// A missing value is as many as the number says, any other one more.
const missing = `1+0x${phases.well - 1} _x${phases.fault} 1+0x${phases.after - 1}`;
/** A counter that rises by `step` a minute during the fault alone. */
const counter = (step = 1) => steps('0+0', `0+${step}`, `${phases.fault * step}+0`);
const day = 24 * 3600;
/** The time of a certificate's end, which is near during the fault and is moved by the renewal. Promtool's clock starts at 0. */
const expiry = (left: number) => gauge(1000 * day, (phases.well + phases.fault) * 60 + left);

const agent = (name: string) => `argocd_principal_agent_connected{agent_name="${name}"}`;

/** For each alert of the charts: a fault that it is for, as series, and how many alerts it must raise. */
export const faults: Readonly<Record<string, { readonly series: Series; readonly alerts?: number }>> = {
  GitOpsControllerDown: { series: { 'gitops_controller_reconciles_done{queue="clusters"}': missing } },
  GitOpsControllerReconcileFails: {
    series: {
      'gitops_controller_keys_retrying{queue="clusters"}': gauge(0, 3),
      'gitops_controller_keys_retrying{queue="fleets"}': gauge(0, 0),
    },
  },
  GitOpsClusterNotReady: {
    series: {
      'gitops_controller_condition{namespace="argocd",name="fleet",type="Ready",status="False"}': gauge(0, 1),
      'gitops_controller_condition{namespace="argocd",name="fleet",type="Ready",status="True"}': gauge(1, 0),
      'gitops_controller_condition{namespace="argocd",name="other",type="Ready",status="True"}': gauge(1, 1),
    },
  },
  GitOpsRolloutStopped: {
    series: { 'gitops_controller_rollout_stopped{namespace="argocd",name="fleet"}': gauge(0, 1) },
  },
  GitOpsRolloutClustersFailed: {
    series: {
      'gitops_controller_rollout_clusters{namespace="argocd",name="fleet",phase="TimeOut"}': gauge(0, 2),
      'gitops_controller_rollout_clusters{namespace="argocd",name="fleet",phase="Succeeded"}': gauge(5, 3),
    },
  },
  GitOpsHubCertificateExpires: {
    series: {
      'gitops_controller_certificate_expiration_timestamp_seconds{namespace="argocd",secret="a"}': expiry(3 * day),
    },
  },
  ArgoCDAgentPrincipalDown: { series: { argocd_principal_connected_agents: missing } },
  ArgoCDAgentDisconnected: { series: { [agent('a')]: gauge(1, 0), [agent('b')]: gauge(1, 1) } },
  ArgoCDAgentsManyDisconnected: {
    series: {
      [agent('a')]: gauge(1, 0),
      [agent('b')]: gauge(1, 0),
      [agent('c')]: gauge(1, 1),
      [agent('d')]: gauge(1, 1),
    },
  },
  ArgoCDAgentChangesNotDelivered: {
    series: { 'argocd_principal_oldest_unsent_change_age_seconds{agent_name="a"}': gauge(0, 400) },
  },
  ArgoCDAgentDeliverySlow: {
    series: {
      'argocd_principal_propagation_delay_seconds_bucket{direction="to_agent",le="1"}': steps('0+5', '300+0', '300+5'),
      'argocd_principal_propagation_delay_seconds_bucket{direction="to_agent",le="300"}': '0+5x240',
      'argocd_principal_propagation_delay_seconds_bucket{direction="to_agent",le="+Inf"}': '0+5x240',
    },
  },
  ArgoCDAgentEventsFail: { series: { 'principal_errors{resource_type="app"}': counter() } },
  ArgoCDAgentEventTooLarge: {
    series: { 'argocd_principal_event_writer_events_discarded_total{agent_name="a",resource_type="app"}': counter() },
  },
  ArgoCDAgentLoginsRefused: { series: { 'argocd_principal_refused_logins_total{reason="certificate"}': counter() } },
  ArgoCDAgentQuotaExceeded: {
    series: { 'argocd_principal_quota_refusals_total{agent_name="a",limit="objects"}': counter() },
  },
  ArgoCDAgentHubCertificateExpires: {
    series: { 'argocd_principal_certificate_expiration_timestamp_seconds{certificate="server"}': expiry(3 * day) },
  },
  ArgoCDAgentRedisDisconnected: { series: { argocd_principal_redis_connected: gauge(1, 0) } },
  ArgoCDAgentLiveAccessFails: {
    series: {
      'argocd_principal_resource_proxy_requests_total{agent_name="a"}': '0+10x240',
      'argocd_principal_resource_proxy_errors_total{agent_name="a",reason="timeout"}': counter(5),
      'argocd_principal_resource_proxy_requests_total{agent_name="b"}': '0+10x240',
      'argocd_principal_resource_proxy_errors_total{agent_name="b",reason="refused"}': counter(5),
    },
  },
  ArgoCDAgentNotConnected: { series: { argocd_agent_connection_status: gauge(1, 0) } },
  ArgoCDAgentReportsNotDelivered: { series: { argocd_agent_oldest_unsent_change_age_seconds: gauge(0, 400) } },
  ArgoCDAgentClientCertificateExpires: {
    series: {
      'argocd_agent_certificate_expiration_timestamp_seconds{certificate="client"}': expiry(3600),
      'argocd_agent_certificate_expiration_timestamp_seconds{certificate="ca"}': expiry(3600),
    },
  },
  ArgoCDAgentClusterRedisDisconnected: { series: { argocd_agent_redis_connected: gauge(1, 0) } },
};
