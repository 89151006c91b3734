import assert from 'node:assert/strict'
import type { ResponseContext, ResponseHead } from '../../src/proxy/upstream/response-head.ts'
import { type ResponseEvents, ResponseReader } from '../../src/proxy/upstream/response-reader.ts'

/** What came out, with the body's pieces put together: where they were cut says nothing. */
export interface Said {
  readonly informs: [number, readonly string[]][]
  head: ResponseHead | null
  body: string
  trailers: readonly string[] | null
  isSurplus: boolean
  fault: string | null
}

export class ResponseRecorder implements ResponseEvents {
  readonly said: Said = { informs: [], head: null, body: '', trailers: null, isSurplus: false, fault: null }
  readonly pieces: number[] = []

  informed(status: number, headers: readonly string[]): void {
    this.#check()
    this.said.informs.push([status, headers])
  }
  headRead(head: ResponseHead): void {
    this.#check()
    assert.equal(this.said.head, null, 'two heads')
    this.said.head = head
  }
  bodyRead(bytes: Buffer): void {
    this.#check()
    assert.ok(this.said.head !== null && bytes.length > 0)
    this.pieces.push(bytes.length)
    this.said.body += bytes.toString('latin1')
  }
  ended(trailers: readonly string[], isSurplus: boolean): void {
    this.#check()
    assert.notEqual(this.said.head, null)
    this.said.trailers = trailers
    this.said.isSurplus = isSurplus
  }
  faulted(fault: string): void {
    this.#check()
    this.said.fault = fault
  }
  #check(): void {
    assert.equal(this.said.fault, null, 'an event after the fault')
    assert.equal(this.said.trailers, null, 'an event after the end')
  }
}

/** Reads the pieces from one reused buffer, as a connection does, and then sees the connection close. */
export function readResponse(pieces: readonly Uint8Array[], asked: ResponseContext, closes = true): Said {
  const recorder = new ResponseRecorder()
  const reader = new ResponseReader(recorder)
  reader.begin(asked)
  const longest = pieces.reduce((length, piece) => Math.max(length, piece.length), 0)
  const shared = Buffer.alloc(longest + 8)
  for (const piece of pieces) {
    shared.fill('\r\n\r\n') // what an earlier read left behind must not be looked at
    shared.set(piece, 0)
    reader.read(shared, piece.length)
  }
  if (closes) reader.close()
  return recorder.said
}
