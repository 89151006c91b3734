import assert from 'node:assert/strict'
import { parse as parseYaml } from 'yaml'
import { inject } from '../../../../src/inject/injection.ts'
import { parsePod } from '../../../../src/inject/pod.ts'
import { sidecarSettings } from '../../../inject/reviews.ts'
import type { Bench, Examples } from '../bench.ts'

export const examples: Examples = [['gatehouse.dev/take-port', injected]]

function injected(_: Bench, example: string): void {
  const { metadata } = parseYaml(example)
  const ports = [{ name: 'https', containerPort: 3443 }]
  const pod = parsePod({ metadata, spec: { containers: [{ name: 'app', image: 'app', ports }] } }, 'web')
  const injection = inject(pod, sidecarSettings(), '1.0.0')
  assert.equal(injection.kind, 'patch')
  assert.ok(JSON.stringify(injection).includes('web-tls'))
}
