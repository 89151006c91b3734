import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import fc from 'fast-check'
import { test } from 'tap'
import { HpackDecoder } from '../../../src/wire/h2/hpack-decoder.ts'
import { HpackEncoder } from '../../../src/wire/h2/hpack-encoder.ts'
import { skipped, skippedLibrary } from '../../e2e/programs.ts'
import { decode, hex } from './hpack-model.ts'
import { EXAMPLES } from './rfc7541.ts'

const CONNECTIONS = 3000
const BLOCKS = 100_000
const HPACK = '/usr/share/gocode/src/golang.org/x/net/http2/hpack'
const missing = skipped('go') || skippedLibrary(HPACK, 'golang-golang-x-net-dev')

test('hpack: Go reads what we write, and we read what Go writes', { skip: missing }, async () => {
  const connections = fc.sample(fc.array(step(), { minLength: 1, maxLength: 20 }), CONNECTIONS)
  const encoded = connections.map((steps) => {
    const encoder = new HpackEncoder()
    return steps.map(({ list, allowed }) => {
      if (allowed !== null) encoder.allow(allowed)
      encoder.begin(0)
      for (let i = 0; i < list.length; i += 2) encoder.field(list[i]!, list[i + 1]!)
      return Buffer.from(encoder.end())
    })
  })
  const lines = connections.flatMap((steps, c) => [
    'new',
    ...steps.flatMap(({ list, allowed }, s) => [
      ...(allowed === null ? [] : [`allow ${Math.min(allowed, 4096)}`]),
      `encode ${written(list)}`,
      `decode ${encoded[c]![s]!.toString('hex')}`,
    ]),
  ])
  const answers = answersOf(lines)
  for (const steps of connections) {
    const decoder = new HpackDecoder()
    for (const { list } of steps) {
      assert.deepEqual(decode(decoder, hex(answers.shift()!)), list)
      assert.equal(answers.shift(), written(list))
    }
  }
})

test('hpack: what Go refuses we refuse, and other lists are the same', { skip: missing }, async () => {
  const mutated = fc
    .tuple(fc.constantFrom(...EXAMPLES), fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 3 }))
    .map(([{ blocks }, changes]) => {
      const block = hex(blocks.at(-1)![0])
      for (const [at, byte] of changes) block[at % block.length] = byte
      return block
    })
  const blocks = fc.sample(fc.oneof(mutated, fc.uint8Array({ minLength: 1, maxLength: 40 })), BLOCKS)
  const answers = answersOf(
    blocks.flatMap((block) => ['new', `decode ${Buffer.from(block).toString('hex')}`]),
  )
  let good = 0
  for (const [i, block] of blocks.entries()) {
    const list: string[] = []
    const decoded = new HpackDecoder({ tableBytesMax: 4096, listBytesMax: 1e6, fieldsMax: 1e6 }).decode(
      block,
      list,
    )
    const hexes = Buffer.from(block).toString('hex')
    if (answers[i] === 'malformed') assert.equal(decoded, 'malformed', hexes)
    else if (decoded === 'whole') assert.equal(answers[i], written(list), hexes)
    if (decoded === 'whole') good++
  }
  assert.ok(good > BLOCKS / 100)
})

interface Step {
  readonly list: readonly string[]
  /** The size of the encoder's table from here on. */
  readonly allowed: number | null
}

function step(): fc.Arbitrary<Step> {
  const byte = fc.nat(255).map((code) => String.fromCharCode(code))
  const text = fc.string({ unit: byte, maxLength: 60 })
  const name = fc.oneof(
    fc.constantFrom('content-type', 'date', 'set-cookie', 'x-a', 'x-b', ':status', 'etag'),
    text,
  )
  const value = fc.oneof(fc.constantFrom('', 'a', '200', 'x'.repeat(3000)), text)
  return fc.record({
    list: fc.array(fc.tuple(name, value), { maxLength: 12 }).map((list) => list.flat()),
    allowed: fc.option(fc.oneof(fc.nat(8192), fc.nat(200)), { freq: 4 }),
  })
}

function written(list: readonly string[]): string {
  return list.map((text) => `${Buffer.from(text, 'latin1').toString('hex')} `).join('')
}

function answersOf(lines: readonly string[]): string[] {
  const folder = resolve('.tap/hpack')
  mkdirSync(folder, { recursive: true })
  const program = join(folder, 'go-hpack')
  const env = {
    ...{ PATH: process.env['PATH'], HOME: folder, GOCACHE: join(folder, 'cache') },
    ...{ GO111MODULE: 'off', GOPATH: '/usr/share/gocode' },
  }
  execFileSync('go', ['build', '-o', program, 'test/wire/h2/go-hpack/main.go'], { env })
  const input = lines.map((line) => `${line}\n`).join('')
  return execFileSync(program, { input, encoding: 'utf8', maxBuffer: 2 ** 30 }).split('\n')
}
