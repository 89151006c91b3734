import { readFileSync } from 'node:fs'
import { type Scope, SCOPES } from '../../src/manage/http/access/principal.ts'

/** `POST /detect` → the scopes of which one is enough: from the manual. */
export function scopeTable(): ReadonlyMap<string, readonly Scope[]> {
  const text = readFileSync(new URL('../../config/guide/authentication.md', import.meta.url), 'utf8')
  const [, section = ''] = /\n## Scopes\n(.*?)\n##/s.exec(text) ?? []
  const table = new Map<string, readonly Scope[]>()
  for (const [, endpoints = '', scopes = ''] of section.matchAll(/^\| (`.*) \| (`.*) \|$/gm))
    for (const endpoint of spansIn(endpoints)) {
      if (!ENDPOINT.test(endpoint))
        throw new Error(`authentication.md, Scopes: ${endpoint} is not an endpoint`)
      if (table.has(endpoint)) throw new Error(`authentication.md, Scopes: ${endpoint} is in two rows`)
      table.set(endpoint, spansIn(scopes).map(scopeIn))
    }
  return table
}

function spansIn(cell: string): readonly string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, span]) => span!)
}

function scopeIn(text: string): Scope {
  const scope = SCOPES.find((each) => each === text)
  if (scope === undefined) throw new Error(`authentication.md, Scopes: ${text} is not a scope`)
  return scope
}

const ENDPOINT = /^(?:GET|POST|PUT|PATCH|DELETE) \/[\w/{}-]+$/
