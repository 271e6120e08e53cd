/**
 * A Deployment whose pod starts only when its cluster has the ConfigMap `gate-<release>`: so a test decides when a release
 * becomes healthy.
 */
export function gatedShop(release: number): string {
  return `
apiVersion: apps/v1
kind: Deployment
metadata: { name: shop }
spec:
  replicas: 1
  selector: { matchLabels: { app: shop } }
  template:
    metadata: { labels: { app: shop } }
    spec:
      containers:
        - name: web
          image: "nginx:1.27"
          readinessProbe: { httpGet: { path: /, port: 80 } }
          volumeMounts: [{ name: gate, mountPath: /gate }]
      volumes: [{ name: gate, configMap: { name: gate-${release} } }]
`;
}
