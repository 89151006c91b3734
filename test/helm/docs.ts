import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Document, isMap, isScalar, type Pair, parseDocument, type Scalar, type YAMLMap } from 'yaml'
import { CHART } from './chart.ts'

/** The chart's README, made of the comments in its values. */
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

/** What a comment that begins with -- says; of the first in a map the parser has it at the map. */
function aboutOf(pair: Pair<Scalar<string>, unknown>, map: YAMLMap): string {
  const comment = pair.key.commentBefore ?? (map.items[0] === pair ? map.commentBefore : null) ?? ''
  const said = comment.split('\n').map((line) => line.trim())
  const begin = said.findIndex((line) => line.startsWith('-- '))
  return begin === -1 ? '' : said.slice(begin).join(' ').slice('-- '.length)
}

const INTRODUCTION = `# The chart

Made from \`values.yaml\` by \`npm run chart:docs\`; not to be edited by hand.

Gatehouse on Kubernetes 1.29 or newer, in any of three ways, also together:

- \`gateway\`: proxies of their own behind a Service, in front of one app.
- \`manage\`: the management plane of a fleet. PostgreSQL and NATS with JetStream are not part of it: \`manage.storeUrl\` and
  \`bus.url\` say where they are, config/nats.conf in the repository what NATS has to allow.
- \`inject\`: the admission webhook that puts a sidecar into Pods with the label \`gatehouse.dev/inject: enabled\`.

Charts of others may have this one as a dependency, and take the sidecar from its template:

\`\`\`yaml
spec:
  initContainers:
    {{- include "gatehouse.sidecar" (dict "root" .Subcharts.gatehouse "upstream" "http://127.0.0.1:3000" "certificateSecret" "web-tls") | nindent 4 }}
  volumes:
    {{- include "gatehouse.sidecarVolumes" (dict "root" .Subcharts.gatehouse "certificateSecret" "web-tls") | nindent 4 }}
\`\`\`

No secret is a value: each is in a Secret that exists before, whose name is given. A gateway that blocks nothing:

\`\`\`sh
helm install gate helm/ --set image.repository=REGISTRY/gatehouse --set gateway.upstream=http://app.default.svc:80 \\
  --set gateway.certificateSecret=app-tls
\`\`\`

The Job that migrates the database runs before the release has a service account, with the password in
\`manage.existingSecret\`. \`alerts.yaml\` and \`dashboards/gatehouse.json\` are what \`monitoring\` installs, for a Prometheus
and a Grafana elsewhere.
`

if (import.meta.main) writeFileSync(join(CHART, 'README.md'), chartReadme())
