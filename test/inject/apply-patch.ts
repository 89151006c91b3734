import assert from 'node:assert/strict'
import { isDeepStrictEqual } from 'node:util'

/** RFC 6902 by the book, and nothing of what src/inject/ has: the other side of the wire. Fails on what cannot be applied. */
export function applyPatch(document: unknown, patch: unknown): unknown {
  assert.ok(Array.isArray(patch))
  const root = { document: structuredClone(document) }
  for (const operation of patch) apply(root, operation)
  return root.document
}

function apply(root: { document: unknown }, operation: Record<string, unknown>): void {
  const { op, path, value } = operation
  assert.ok(typeof path === 'string' && (path === '' || path.startsWith('/')), `a pointer: ${path}`)
  assert.ok('value' in operation, 'a value')
  const tokens = path.split('/').slice(1).map(unescaped)
  const last = tokens.pop()
  assert.ok(last !== undefined, 'the whole document is not replaced here')
  let target: unknown = root.document
  for (const token of tokens) target = existing(target, token, path)
  switch (op) {
    case 'test':
      return assert.ok(isDeepStrictEqual(existing(target, last, path), value), `test of ${path}`)
    case 'replace':
      existing(target, last, path)
      return set(target, last, value)
    case 'add':
      return add(target, last, value, path)
    default:
      assert.fail(`operation ${op}`)
  }
}

function existing(target: unknown, token: string, path: string): unknown {
  assert.ok(typeof target === 'object' && target !== null, `nothing at ${path}`)
  if (Array.isArray(target)) assert.match(token, INDEX, path)
  assert.ok(Object.hasOwn(target, token), `no ${token} of ${path}`)
  return Reflect.get(target, token)
}

function add(target: unknown, token: string, value: unknown, path: string): void {
  assert.ok(typeof target === 'object' && target !== null, `nothing to add to at ${path}`)
  if (!Array.isArray(target)) return set(target, token, value)
  if (token === '-') return void target.push(structuredClone(value))
  assert.match(token, INDEX, path)
  assert.ok(Number(token) <= target.length, path)
  target.splice(Number(token), 0, structuredClone(value))
}

function set(target: unknown, token: string, value: unknown): void {
  const property = { value: structuredClone(value), enumerable: true, writable: true, configurable: true }
  Object.defineProperty(target, token, property)
}

function unescaped(token: string): string {
  return token.replaceAll('~1', '/').replaceAll('~0', '~')
}

const INDEX = /^(?:0|[1-9]\d*)$/
