import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Document, isMap, isScalar, type Pair, parseDocument, type Scalar, type YAMLMap } from 'yaml'
import { CHART } from './chart.ts'

/** The README of the chart: how to use it, and a table of its values from their comments. */
export function chartReadme(): string {
  const text = readFileSync(join(CHART, 'values.yaml'), 'utf8')
  const rows = rowsOf((parseDocument(text) as Document<YAMLMap>).contents, '')
  return `${INTRODUCTION}\n| value | default | meaning |\n| --- | --- | --- |\n${rows.join('\n')}\n`
}

function rowsOf(map: YAMLMap | null, prefix: string): string[] {
  return (map?.items ?? []).flatMap((pair) => {
    const { key, value } = pair as Pair<Scalar<string>, unknown>
    const name = `${prefix}${key.value}`
    const about = aboutOf(pair as Pair<Scalar<string>, unknown>, map!)
    if (isMap(value) && value.items.length > 0 && value.flow !== true) return rowsOf(value, `${name}.`)
    const shown = isScalar(value) ? JSON.stringify(value.value) : JSON.stringify((value as YAMLMap).toJSON())
    return [`| \`${name}\` | \`${shown}\` | ${about.replaceAll('|', '\\|')} |`]
  })
}

/** The text of a comment that begins with --. The parser puts the comment of a map's first key on the map. */
function aboutOf(pair: Pair<Scalar<string>, unknown>, map: YAMLMap): string {
  const comment = pair.key.commentBefore ?? (map.items[0] === pair ? map.commentBefore : null) ?? ''
  const said = comment.split('\n').map((line) => line.trim())
  const begin = said.findIndex((line) => line.startsWith('-- '))
  return begin === -1 ? '' : said.slice(begin).join(' ').slice('-- '.length)
}

const INTRODUCTION = `# The chart

Generated from \`values.yaml\` by \`npm run chart:docs\`; do not edit by hand.

Gatehouse on Kubernetes 1.29 or newer, in any combination of:

- \`gateway\`: proxies of their own behind a Service, in front of one app.
- \`manage\`: the management plane of a fleet. It needs PostgreSQL and NATS with JetStream, which are not part of the chart.
- \`inject\`: an admission webhook that adds a sidecar to Pods with the label \`gatehouse.dev/inject: enabled\`.

No secret is a value of the chart. Secrets are created before, and values have their names.

## A gateway

\`\`\`sh
kubectl create namespace gatehouse
kubectl -n gatehouse create secret tls app-tls --cert=tls.crt --key=tls.key
head -c 48 /dev/urandom > key && kubectl -n gatehouse create secret generic gate-tickets --from-file=key && rm key
helm -n gatehouse install gate helm/ --set image.repository=REGISTRY/gatehouse \\
  --set gateway.upstream=http://app.default.svc:80 --set gateway.certificateSecret=app-tls \\
  --set gateway.ticketKeySecret=gate-tickets
\`\`\`

Settings without a value of their own go into \`gateway.config\`, \`manage.config\` and \`inject.config\`, as in
[config/README.md](../config/README.md). They end up in a ConfigMap, so the chart refuses secrets there: use a file
(\`extraVolumes\`) or a variable from a Secret (\`extraEnv\`).

## A fleet

config/nats.conf has the users of NATS, config/postgres-roles.sql those of PostgreSQL: managers run as \`gatehouse_runtime\`,
and the migration Job as \`gatehouse_owner\`, the owner of the tables.

\`\`\`sh
kubectl -n gatehouse create secret generic nats-users --from-literal=manage-password=… --from-literal=proxy-password=…
kubectl -n gatehouse create secret generic gate-manage --from-literal=store-password=… \\
  --from-literal=encryption-key="$(head -c 32 /dev/urandom | base64)" \\
  --from-literal=admin-key="$(head -c 24 /dev/urandom | base64)"
kubectl -n gatehouse create secret generic gate-owner --from-literal=store-password=…
helm -n gatehouse upgrade --install gate helm/ --reuse-values -f fleet-values.yaml
\`\`\`

\`\`\`yaml
bus: {url: "nats://nats.data.svc:4222", existingSecret: nats-users}
manage:
  enabled: true
  storeUrl: postgres://gatehouse_runtime@postgres.data.svc/gatehouse
  existingSecret: gate-manage
  hasAdminKey: true
  migrations:
    storeUrl: postgres://gatehouse_owner@postgres.data.svc/gatehouse
    existingSecret: gate-owner
\`\`\`

The migration Job is a hook: it runs before anything else of the release exists. It gets the password of the owner and
nothing else. A failed Job stays for its logs: \`kubectl -n gatehouse logs job/gate-migrate\`. Without a Secret of the owner it
uses that of the managers. \`helm rollback\` does not undo a migration: managers of the old version that run go on with newer
tables, and new Pods of that version do not start on them. Take a backup before an upgrade that migrates.

NATS with a CA of its own, client certificates or \`.creds\` files: \`bus.caConfigMap\`, \`bus.manageCertificateSecret\`,
\`bus.proxyCertificateSecret\`, and \`bus.login: credentials\` with the keys \`manage.creds\` and \`proxy.creds\`.

## Sidecars in other namespaces

A Pod can mount Secrets of its own namespace only. So each namespace with sidecars needs its own copy of what they log in to
NATS with. The webhook does not make these copies: for that it would need the right to write Secrets everywhere. It adds the
names of the objects to the Pod, never a secret.

\`\`\`sh
NS=shop
kubectl -n $NS create secret generic gatehouse-bus --from-literal=password="$(kubectl -n gatehouse get secret nats-users -o jsonpath='{.data.proxy-password}' | base64 -d)"
# Only with bus.login: credentials, instead of the line before:
kubectl -n gatehouse get secret nats-users -o jsonpath='{.data.proxy\\.creds}' | base64 -d | kubectl -n $NS create secret generic gatehouse-bus --from-file=nats.creds=/dev/stdin
# Only with bus.caConfigMap:
kubectl -n $NS create configmap gatehouse-bus-ca --from-literal=ca.crt="$(kubectl -n gatehouse get configmap nats-ca -o jsonpath='{.data.ca\\.crt}')"
# Only with bus.proxyCertificateSecret; cert-manager can issue it too:
kubectl -n $NS create secret tls gatehouse-bus-tls --cert=tls.crt --key=tls.key
\`\`\`

- Never copy \`nats-users\` itself: it has the password of the managers.
- For many namespaces use a controller that you have: External Secrets (\`ClusterExternalSecret\`), or trust-manager for the CA.
- **A user for each namespace** limits what a leaked password costs. Repeat the user \`proxy\` of config/nats.conf under another
  name, with the same permissions, and name it and its Secret on the Pods: \`gatehouse.dev/bus-user: proxy-shop\`,
  \`gatehouse.dev/bus-secret: shop-bus\`.
- **If an object or a key is missing**, the Pod stays in \`ContainerCreating\`, and \`kubectl -n $NS describe pod\` has the reason:
  \`MountVolume.SetUp failed for volume "gatehouse-bus": secret "gatehouse-bus" not found\`. If the password is wrong, the
  sidecar starts, logs \`NATS cannot be reached\`, and \`gatehouse_bus_up\` is 0.
- An image in a private registry needs a pull Secret in each of these namespaces: \`inject.sidecar.pull_secrets\` adds it to the
  Pods.

Charts that depend on this one can take the sidecar from its templates instead, in the namespace of the release:

\`\`\`yaml
spec:
  initContainers:
    {{- include "gatehouse.sidecar" (dict "root" .Subcharts.gatehouse "upstream" "http://127.0.0.1:3000" "certificateSecret" "web-tls") | nindent 4 }}
  volumes:
    {{- include "gatehouse.sidecarVolumes" (dict "root" .Subcharts.gatehouse "certificateSecret" "web-tls") | nindent 4 }}
\`\`\`

## Secrets that change

\`helm upgrade\` restarts the Pods whose Secrets or ConfigMaps have changed since the last time: it compares their
\`resourceVersion\`, and never writes their content anywhere. It needs the right to get Secrets of the namespace, which Helm
itself needs too. \`helm template\`, and with it Argo CD, sees no cluster: there, set \`secretsVersion\` to another text.
Certificates and the logins of NATS and PostgreSQL need no restart: they are loaded again a minute or two after the Secret has
changed, in sidecars too ([operations](../config/guide/operations.md#replacing-secrets-while-it-runs)). \`admin-key\` needs one.

To replace the encryption key, follow the four steps there: \`encryption-key\` has one key a line. The third step is:

\`\`\`sh
kubectl -n gatehouse exec deploy/gate-manage -- node /app/dist/bin.js rekey --config /etc/gatehouse/gatehouse.yaml
\`\`\`

Pods with an injected sidecar get a new image or new settings of it when they are recreated: \`kubectl rollout restart\`.

## While NATS is down

A proxy keeps the last Snapshot (policy and signatures) in \`data.dir\`. A container that restarts finds it there. A Pod that is
recreated has lost it. It is not ready until NATS is back (\`bus.firstSnapshot: wait\`), unless it has one of these:

- **A volume** for each gateway: \`gateway.persistence.enabled\`. Gateways are then a StatefulSet, and a new Pod with the same
  name has the volume of the old one. An update replaces one Pod at a time, without a spare one. Switching persistence on or
  off replaces all gateways at once: do it while they have no traffic.
- **A ConfigMap** with a Snapshot: \`gateway.bootstrapConfigMap\`, and for sidecars \`inject.bootstrapConfigMap\` in each of their
  namespaces. It is optional, and a newer Snapshot from NATS takes its place. Anyone who can write it decides what proxies block
  until then. Repeat this from time to time:

\`\`\`sh
kubectl -n gatehouse exec deploy/gate-manage -- node /app/dist/bin.js snapshot export --config /etc/gatehouse/gatehouse.yaml > fleet.snapshot
kubectl -n $NS create configmap first-snapshot --from-file=fleet.snapshot --dry-run=client -o yaml | kubectl apply --server-side -f -
\`\`\`

\`kubectl -n gatehouse exec deploy/gate-gateway -- node /app/dist/bin.js doctor --role proxy --config /etc/gatehouse/gatehouse.yaml\`
says what a gateway waits for.

## Settings that matter on Kubernetes

\`\`\`yaml
gateway:
  upstream: http://app.default.svc:80
  config:
    proxy:
      # Other hosts get 421: rules for a host cannot be avoided by naming another one.
      hosts: [www.example.com]
      # A load balancer that adds X-Forwarded-For.
      trusted_proxies: [10.0.0.0/8]
      # A gateway whose app is down is not ready, so that the Service uses another one.
      ready: upstream
bus: {url: "nats://nats.data.svc:4222", existingSecret: nats-users}
manage:
  enabled: true
  storeUrl: postgres://gatehouse_runtime@postgres.data.svc/gatehouse
  existingSecret: gate-manage
  config:
    manage:
      # The ingress controller: throttles and the audit log then use the address of the client.
      trusted_proxies: [10.0.0.0/8]
\`\`\`

## Monitoring and network

\`monitoring.podMonitor\` scrapes each Pod once, by its address. \`alerts.yaml\` and \`dashboards/gatehouse.json\` are for a
Prometheus and a Grafana without their operators.

\`networkPolicy.egress\` checks ports, not hosts. Ports are those of the Pods behind a Service: if the app's Service has another
\`targetPort\`, set \`networkPolicy.egress.upstreamPorts\`. Sidecars need, in their own namespaces: DNS, and the port of NATS.

## Values
`

if (import.meta.main) writeFileSync(join(CHART, 'README.md'), chartReadme())
