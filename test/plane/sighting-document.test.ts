import assert from 'node:assert/strict'
import { test } from 'tap'
import { parseSighting } from '../../src/plane/sighting-document.ts'
import { sighting } from '../contract/bus.ts'

const LATER = [
  'mcpMethod',
  'mcpTool',
  'app',
  'purposes',
  'nameConfidence',
  'limited',
  'signer',
  'key',
  'signatureFault',
  'allegedSigner',
  'requestKind',
  'program',
  'headerOrder',
  'target',
  'campaign',
  'visitor',
  'sampled',
  'layer',
]

test('a Sighting comes back as it was written', async () => {
  assert.deepEqual(parseSighting(JSON.stringify(sighting(1))), sighting(1))
  assert.deepEqual(parseSighting(JSON.stringify({ ...sighting(1), later: 1 })), sighting(1))
})

test('whatever is missing or of another type is said', async () => {
  for (const name of Object.keys(sighting(1))) {
    const without = { ...sighting(1), [name]: undefined }
    // Those that were written before there was this.
    const added: Readonly<Record<string, unknown>> = { app: 'default', layer: null }
    const read = { ...sighting(1), ...(name in added && { [name]: added[name] }) }
    const expected = LATER.includes(name) ? read : `has no ${name}`
    assert.deepEqual(parseSighting(JSON.stringify(without)), expected)
    assert.equal(
      parseSighting(JSON.stringify({ ...sighting(1), [name]: {} })),
      `${name} is not what it should be`,
    )
  }
  for (const [member, what] of [
    [{ verdict: 'robot' }, 'verdict'],
    [{ evidence: ['a', 1] }, 'evidence'],
    [{ confidence: -1 }, 'confidence'],
    [{ app: 'Shop' }, 'app'],
    [{ app: 'a'.repeat(64) }, 'app'],
  ] as const)
    assert.equal(
      parseSighting(JSON.stringify({ ...sighting(1), ...member })),
      `${what} is not what it should be`,
    )
})

test('refuses values that are not Sightings', async () => {
  for (const [line, what] of [
    ['', 'is not valid JSON'],
    ['{"id": "a', 'is not valid JSON'],
    ['null', 'is not an object'],
    ['[]', 'is not an object'],
    ['1', 'is not an object'],
    ['{}', 'has no id'],
    ['{"__proto__": {"id": "a"}}', 'has no id'],
  ] as const)
    assert.equal(parseSighting(line), what)
})
