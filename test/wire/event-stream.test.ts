import assert from 'node:assert/strict'
import { test } from 'tap'
import { EventStreamReader, type StreamEvent } from '../../src/wire/event-stream.ts'

// WHATWG HTML §9.2.6, its own examples among them.
const STREAM = [
  ': test stream\n\n',
  'data: first event\nid: 1\n\n',
  'data:second event\nid\n\n',
  'data:  third event\n\n',
  'event: add\ndata: 73857293\r\n\r\n',
  'data\n\ndata\ndata\n\n',
  'event: only\n\n',
  'retry: 2000\nunknown: x\nid: 7\rdata: é\rdata: 日本\r\r\n',
  'data: unfinished',
].join('')
const EVENTS: readonly StreamEvent[] = [
  { event: 'message', data: 'first event', id: '1' },
  { event: 'message', data: 'second event', id: '' },
  { event: 'message', data: ' third event', id: '' },
  { event: 'add', data: '73857293', id: '' },
  { event: 'message', data: '', id: '' },
  { event: 'message', data: '\n', id: '' },
  { event: 'message', data: 'é\n日本', id: '7' },
]

test('an event stream is read alike however it is cut', async () => {
  for (let first = 0; first <= STREAM.length; first++)
    for (let second = first; second <= STREAM.length; second += 7) {
      const reader = new EventStreamReader(1_000)
      const pieces = [STREAM.slice(0, first), STREAM.slice(first, second), STREAM.slice(second)]
      assert.deepEqual(
        pieces.flatMap((piece) => reader.read(piece) ?? assert.fail()),
        EVENTS,
        `cut at ${first} and ${second}`,
      )
    }
})

test('drops an event that is too long, in one line or in many', async () => {
  const oneLine = new EventStreamReader(100)
  assert.equal(oneLine.read(`data: ${'x'.repeat(200)}`), null)
  const many = new EventStreamReader(100)
  let read: readonly StreamEvent[] | null = []
  for (let line = 0; line < 20 && read !== null; line++) read = many.read('data: 0123456789\n')
  assert.equal(read, null)
  assert.deepEqual(new EventStreamReader(100).read('data: fits\n\n'), [
    { event: 'message', data: 'fits', id: '' },
  ])
})
