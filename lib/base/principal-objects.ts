/** How the principal's objects on a hub are found, however it was installed. */
export const principalObjects = {
  /** Selects all of them. */
  labelSelector: 'app.kubernetes.io/name=argocd-agent-principal,app.kubernetes.io/component=principal',
  /** Name of the port of the Service that serves the fleet page. */
  fleetPagePort: 'fleet-page',
} as const;
