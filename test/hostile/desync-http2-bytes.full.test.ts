import assert from 'node:assert/strict'
import { test } from 'tap'
import { skipped } from '../e2e/programs.ts'
import { data, getRequest, headers } from '../proxy/http2-frames.ts'
import { MARK } from './desync-case.ts'
import { HTTP2_FRONTS, type Gate, IS_WHOLE, startGate } from './desync-gate.ts'
import { Http2Peer } from './desync-http2-peer.ts'
import { HTTP2_UPSTREAMS, type Seen, UPSTREAMS } from './desync-upstreams.ts'

/** A request with one place in it for a byte: in a field, or in a pseudo-header. */
type Template = (byte: string) => Readonly<Record<string, string>>

const PLACES: Readonly<Record<string, Template>> = {
  'before a path': (byte) => ({ ':path': `${byte}/-${MARK}-z` }),
  'in a path': (byte) => ({ ':path': `/-${MARK}-${byte}z` }),
  'behind a path': (byte) => ({ ':path': `/-${MARK}-z${byte}` }),
  'before a method': (byte) => ({ ':method': `${byte}POST` }),
  'in a method': (byte) => ({ ':method': `PO${byte}ST` }),
  'behind a method': (byte) => ({ ':method': `POST${byte}` }),
  'in a scheme': (byte) => ({ ':scheme': `htt${byte}p` }),
  'before an authority': (byte) => ({ ':authority': `${byte}a` }),
  'in an authority': (byte) => ({ ':authority': `a${byte}c` }),
  'behind an authority': (byte) => ({ ':authority': `a${byte}` }),
  'before a name': (byte) => ({ [`${byte}name`]: 'value' }),
  'in a name': (byte) => ({ [`na${byte}me`]: 'value' }),
  'behind a name': (byte) => ({ [`name${byte}`]: 'value' }),
  'before a value': (byte) => ({ name: `${byte}value` }),
  'in a value': (byte) => ({ name: `val${byte}ue` }),
  'behind a value': (byte) => ({ name: `value${byte}` }),
  'in a cookie': (byte) => ({ cookie: `a=${byte}b` }),
  'before a length': (byte) => ({ 'content-length': `${byte}5` }),
  'behind a length': (byte) => ({ 'content-length': `5${byte}` }),
  'behind the name of a length': (byte) => ({ [`content-length${byte}`]: '5' }),
  'before the name of a coding': (byte) => ({ [`${byte}transfer-encoding`]: 'chunked' }),
  'behind the name of a coding': (byte) => ({ [`transfer-encoding${byte}`]: 'chunked' }),
  'in an expectation': (byte) => ({ expect: `100-continue${byte}` }),
}

for (const [front, settings] of Object.entries(HTTP2_FRONTS)) {
  for (const [name, start] of Object.entries({ ...UPSTREAMS, ...HTTP2_UPSTREAMS })) {
    const [program = ''] = name.split(' ')
    test(`${front} before ${name}: any byte anywhere in HTTP/2 makes one request, or none`, {
      skip: program === 'nginx' || program === 'apache2' ? skipped(program) : false,
      timeout: 600_000,
    }, async (t) => {
      const upstream = await start(t)
      const gate = await startGate(t, upstream.url, settings)
      const tried = Object.entries(PLACES).flatMap(([place, template]) =>
        valuesFor(name).map((value) => ({ place, value, fields: template(String.fromCharCode(value)) })),
      )
      for (const [index, { fields }] of tried.entries()) await send(gate, fields, index)
      const decided = Map.groupBy(
        (await gate.sightings()).map(({ method, path }) => `${method} ${path}`),
        markIn,
      )
      const found = Map.groupBy(await upstream.seen(), ({ line }) => markIn(line))
      // A method may have any name; Node knows some, and says so.
      const faults = upstream.faults.filter((code) => code !== 'HPE_INVALID_METHOD')
      assert.deepEqual(faults, [])
      let served = 0
      for (const [index, { place, value, fields }] of tried.entries()) {
        const title = `${value} ${place}`
        const mark = markOf(index)
        const [request, ...more] = (found.get(mark) ?? []).filter(({ isWhole }) => isWhole !== false)
        assert.deepEqual(more, [], `${title}: one request`)
        assert.ok((decided.get(mark) ?? []).length <= 1, `${title}: one decision`)
        if (request !== undefined) {
          assert.equal(decided.get(mark)?.length, 1, `${title}: it was decided on`)
          assertMeant(request, fields, mark, title)
          served++
        }
        found.delete(mark)
        decided.delete(mark)
      }
      assert.deepEqual([[...found], [...decided]], [[], []], 'without a client')
      assert.ok(served > 20 && served < tried.length, `${served}`)
      t.comment(`${tried.length} requests, ${served} served`)
    })
  }
}

function valuesFor(name: string): number[] {
  if (IS_WHOLE) return Array.from({ length: 256 }, (_, value) => value)
  const text = name === 'bytes' ? '\0\x01\t\n\x0b\r !"#,/:;=@A[\\_z\x7f\x80\x8a\xa0\xff' : '\0\n\r A:\xff'
  return Array.from(text, (character) => character.charCodeAt(0))
}

async function send(gate: Gate, fields: Readonly<Record<string, string>>, index: number): Promise<void> {
  const peer = await Http2Peer.open(gate, 'plain')
  const list = getRequest({ ':method': 'POST', ':path': `/-${MARK}-z`, ...fields })
  const text = headers(1, list, { hasEnded: false }).toString('latin1')
  peer.write(Buffer.from(text.replaceAll(MARK, markOf(index)), 'latin1'))
  peer.write(data(1, 'hello'))
  await peer.endOf(1)
  peer.close()
}

/** With the byte where it was sent; what else it did to the request, no upstream can see. */
function assertMeant(
  { line, host, body }: Seen,
  fields: Readonly<Record<string, string>>,
  mark: string,
  title: string,
): void {
  const { ':method': method = 'POST', ':path': path = `/-${MARK}-z`, ':authority': authority = 'a' } = fields
  assert.deepEqual(
    [line, host ?? authority, body ?? 'hello'],
    [`${method} ${path.replace(MARK, mark)}`, authority, 'hello'],
    title,
  )
}

function markOf(index: number): string {
  return String(index).padStart(MARK.length, '0')
}

function markIn(line: string): string {
  return /-(\d{6})-/.exec(line)?.[1] ?? line
}
