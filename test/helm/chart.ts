import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'
import { Ajv } from 'ajv'
import { parse, parseAllDocuments } from 'yaml'
import { skipped, skippedLibrary } from '../e2e/programs.ts'

/** An object of Kubernetes, as a template renders it. */
export interface Manifest {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: {
    readonly name: string
    readonly namespace?: string
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
  }
  // Each kind has its own.
  readonly [name: string]: unknown
}

export type Values = { readonly [name: string]: unknown }

/** Why the chart cannot be rendered with these values. */
export class NotRendered extends Error {}

/** What a rendering depends on besides the values. */
export interface Surroundings {
  readonly cluster?: Cluster
  /** One more template, as another chart has it that depends on this one. */
  readonly template?: string
}

/** Objects of the namespace that `lookup` finds: by `Secret/NAME`. */
export type Cluster = Readonly<Record<string, { readonly metadata: { readonly resourceVersion: string } }>>

/** All manifests of the chart, as `helm install` would apply them. Throws NotRendered. */
export function rendered(values: Values, around: Surroundings = {}): readonly Manifest[] {
  return Object.entries(templates(values, around))
    .filter(([name]) => name.endsWith('.yaml'))
    .flatMap(([name, text]) =>
      parseAllDocuments(text).flatMap((document) => {
        assert.deepEqual(document.errors, [], name)
        const value = document.toJS() as Manifest | null
        return value === null ? [] : [value]
      }),
    )
}

/** The rendered text of each template. */
export function templates(values: Values, around: Surroundings = {}): Readonly<Record<string, string>> {
  const problem = schemaProblem(values)
  if (problem !== null) throw new NotRendered(problem)
  const input = JSON.stringify({ values, release: 'gate', namespace: 'web', ...around })
  const { status, stdout, stderr } = spawnSync(renderer(), [CHART], { input, encoding: 'utf8' })
  if (status !== 0) throw new NotRendered(stderr)
  return JSON.parse(stdout)
}

/** Why Kubernetes would refuse it; `null` if it would not, or if the kind is not one of its own. */
export function problemOf({ apiVersion, kind, ...rest }: Manifest): string | null {
  if (FOREIGN.has(`${apiVersion} ${kind}`)) return null
  const module = require(`kubernetes-models/${apiVersion}/${kind}`) as Record<string, Model>
  const Kind = module[kind]
  assert.ok(Kind !== undefined, `${apiVersion} ${kind}`)
  try {
    new Kind(rest).validate()
    return null
  } catch (error) {
    return (error as Error).message
  }
}

interface Model {
  new (data: unknown): { validate(): void }
}

/** As helm does, before it renders anything. */
function schemaProblem(values: Values): string | null {
  const defaults: Values = parse(readFileSync(join(CHART, 'values.yaml'), 'utf8'))
  const validate = new Ajv({ strict: false, allErrors: true }).compile(
    JSON.parse(readFileSync(join(CHART, 'values.schema.json'), 'utf8')),
  )
  if (validate(over(defaults, values))) return null
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`).join('\n')
}

function over(below: Values, above: Values): Values {
  const all: Record<string, unknown> = { ...below }
  for (const [name, value] of Object.entries(above))
    all[name] = isObject(value) && isObject(all[name]) ? over(all[name], value) : value
  return all
}

function isObject(value: unknown): value is Values {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The reason to skip a test that renders the chart. */
export function withoutRenderer(): string | false {
  return skipped('go') || skippedLibrary(SPRIG, 'golang-github-masterminds-sprig-dev')
}

/** Compiled once for each run. */
function renderer(): string {
  if (built !== null) return built
  const folder = resolve('.tap/helm')
  mkdirSync(folder, { recursive: true })
  const program = join(folder, `render-${process.pid}`)
  execFileSync('go', ['build', '-o', program, 'test/helm/render/main.go'], {
    env: {
      ...{ PATH: process.env['PATH'], HOME: folder, GOCACHE: join(folder, 'cache') },
      ...{ GO111MODULE: 'off', GOPATH: '/usr/share/gocode' },
    },
  })
  built = program
  return built
}

let built: string | null = null
const SPRIG = '/usr/share/gocode/src/github.com/Masterminds/sprig'
const require = createRequire(import.meta.url)
export const CHART = 'helm'
/** Kinds of other projects: kubernetes-models has no schema for them. */
const FOREIGN = new Set([
  'monitoring.coreos.com/v1 PodMonitor',
  'monitoring.coreos.com/v1 ServiceMonitor',
  'monitoring.coreos.com/v1 PrometheusRule',
  'cert-manager.io/v1 Certificate',
])
