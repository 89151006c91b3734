import { readFileSync } from 'node:fs'
import { type Scope, SCOPES } from '../../src/manage/http/access/principal.ts'

/** `POST /detect` → the scopes of which one is enough: as the README tells whoever asks for a credential. */
export function scopeTable(): ReadonlyMap<string, readonly Scope[]> {
  const text = readFileSync(new URL('../../README.md', import.meta.url), 'utf8')
  const [, section = ''] = /\n### Scopes\n(.*?)\n##/s.exec(text) ?? []
  const table = new Map<string, readonly Scope[]>()
  for (const [, endpoints = '', scopes = ''] of section.matchAll(/^\| (`.*) \| (`.*) \|$/gm))
    for (const endpoint of spansIn(endpoints)) {
      if (!ENDPOINT.test(endpoint)) throw new Error(`README.md, Scopes: ${endpoint} is no endpoint`)
      if (table.has(endpoint)) throw new Error(`README.md, Scopes: ${endpoint} is in two rows`)
      table.set(endpoint, spansIn(scopes).map(scopeIn))
    }
  return table
}

function spansIn(cell: string): readonly string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, span]) => span!)
}

function scopeIn(text: string): Scope {
  const scope = SCOPES.find((each) => each === text)
  if (scope === undefined) throw new Error(`README.md, Scopes: ${text} is no scope`)
  return scope
}

const ENDPOINT = /^(?:GET|POST|PUT|PATCH|DELETE) \/[\w/{}-]+$/
