import { request } from 'node:http'
import type { IncomingMessage } from 'node:http'
import type { NewEvent } from '../../src/store/events/events.ts'
import type { Store } from '../../src/store/store.ts'

/** One block of Server-Sent Events: its fields as they were sent, of several `data` the last. */
export interface SentEvent {
  readonly id?: string
  readonly event?: string
  readonly data?: string
  readonly retry?: string
}

export interface Asking {
  readonly key: string
  readonly lastEventId?: string
  /** Events, unless it says otherwise. */
  readonly accept?: string
  readonly method?: string
}

/** A stream of events, read by hand, which can be left in the middle of a line. */
export class EventReader {
  readonly #answer: IncomingMessage
  #pieces: string[] = []
  #seen = 0

  static async open(
    url: string,
    { key, lastEventId, accept = 'text/event-stream', method = 'GET' }: Asking,
  ): Promise<EventReader> {
    const headers = {
      authorization: `Bearer ${key}`,
      ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
      accept,
    }
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
    const asked = request(url, { method, headers, agent: false }, resolve)
    asked.on('error', reject).end()
    return new EventReader(await promise)
  }

  private constructor(answer: IncomingMessage) {
    this.#answer = answer
    answer.setEncoding('utf8')
    answer.on('data', (text: string) => {
      this.#pieces.push(text)
      const since = `${this.#pieces.at(-2)?.slice(1 - MARK.length) ?? ''}${text}`
      this.#seen += since.split(MARK).length - 1
    })
    answer.on('error', () => undefined)
  }

  get status(): number {
    return this.#answer.statusCode!
  }

  get headers(): IncomingMessage['headers'] {
    return this.#answer.headers
  }

  get hasEnded(): boolean {
    return this.#answer.closed
  }

  /** All that has come, also half an event. */
  get text(): string {
    return this.#pieces.join('')
  }

  /** How many new agents and signatures it was told of; expected no time to ask for that. */
  get seen(): number {
    return this.#seen
  }

  /** Those that have come whole, comments left out. */
  get events(): readonly SentEvent[] {
    const blocks = this.text.split('\n\n').slice(0, -1)
    return blocks.map(readBlock).filter((each) => Object.keys(each).length > 0)
  }

  /** Less what only says where it is. */
  get told(): readonly SentEvent[] {
    return this.events.filter(({ event }) => event !== undefined && event !== 'position' && event !== 'reset')
  }

  /** What `data` of those has at this name. */
  ids(): readonly string[] {
    return this.told.map(({ data }) => (JSON.parse(data!) as { id: string }).id)
  }

  /** What has come. */
  forget(): void {
    this.#pieces = []
  }

  pause(): void {
    this.#answer.pause()
  }

  resume(): void {
    this.#answer.resume()
  }

  leave(): void {
    this.#answer.destroy()
  }
}

const MARK = '\nevent: new_'

function readBlock(block: string): SentEvent {
  const fields: Record<string, string> = {}
  for (const line of block.split('\n')) {
    const [, name, value] = /^(\w+): (.*)$/.exec(line) ?? []
    if (name !== undefined) fields[name] = value!
  }
  return fields
}

/** Resolves when it holds; the test's own time limit is for the case that it never does. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 5))
}

export function newEvent(id: string, more: Partial<NewEvent> = {}): NewEvent {
  const about = { agent: null, category: null, severity: null, confidence: null, app: null }
  return {
    ...{ id, type: 'new_signature', atMs: Date.now(), subject: 'ja4 x', ...about },
    ...{ data: '{"signature":{"id":"x"}}', ...more },
  }
}

export async function addEvents(store: Store, ...events: readonly NewEvent[]): Promise<void> {
  await store.transaction((queries) => store.events.add(events, queries))
}
