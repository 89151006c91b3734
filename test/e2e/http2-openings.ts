import { run } from './programs.ts'

/** How a client opened HTTP/2, as Wireshark reads it. */
export interface Http2Opening {
  readonly clientPort: number
  /** In Akamai's form, put together from Wireshark's fields. */
  readonly text: string
}

/** What tshark finds of clients that opened HTTP/2 with the server at `port`. */
export async function http2Openings(
  capture: string,
  keyLog: string,
  port: number,
  folder: string,
): Promise<Http2Opening[]> {
  const argv = [
    ...['-r', capture, '-o', `tls.keylog_file:${keyLog}`, '-d', `tcp.port==${port},tls`, '-n', '-2'],
    ...['-Y', `http2 && tcp.dstport == ${port}`, '-T', 'pdml'],
  ]
  const { status, stdout, stderr } = await run('tshark', argv, {
    env: { PATH: process.env['PATH'], HOME: folder },
  })
  if (status !== 0) throw new Error(`tshark: ${stderr}`)
  const openings = new Map<number, Opening>()
  let current = new Opening()
  for (const [, name, show, value] of stdout.matchAll(FIELD)) {
    if (name === 'tcp.srcport') {
      const clientPort = Number(show)
      current = openings.get(clientPort) ?? new Opening()
      openings.set(clientPort, current)
    } else current.field(name!, show!, value!)
  }
  return [...openings].map(([clientPort, opening]) => ({ clientPort, text: opening.text }))
}

class Opening {
  readonly #settings: string[] = []
  readonly #priorities: string[] = []
  readonly #pseudoHeaders: string[] = []
  #windowUpdate: string | null = null
  #type = ''
  #stream = ''
  #settingsFrames = 0
  #requests = 0
  #setting = ''
  #dependency = ''
  #exclusive = ''

  get text(): string {
    const priorities = this.#priorities.length === 0 ? '0' : this.#priorities.join(',')
    return [
      this.#settings.join(';'),
      this.#windowUpdate ?? '00',
      priorities,
      this.#pseudoHeaders.join(','),
    ].join('|')
  }

  /** In the order in which tshark shows them, which is that of the bytes. */
  field(name: string, show: string, value: string): void {
    switch (name) {
      case 'http2.type':
        this.#type = show
        if (show === SETTINGS) this.#settingsFrames++
        if (show === HEADERS) this.#requests++
        return
      case 'http2.streamid':
        this.#stream = show
        return
      case 'http2.header.name':
        if (this.#requests === 1 && show.startsWith(':')) this.#pseudoHeaders.push(show.charAt(1))
        return
    }
    if (this.#requests > 0) return
    // Under a name of its own for each setting: the field that follows the identifier.
    if (this.#setting !== '') {
      if (this.#settingsFrames === 1) this.#settings.push(`${this.#setting}:${parseInt(value, 16)}`)
      this.#setting = ''
      return
    }
    switch (name) {
      case 'http2.settings.id':
        this.#setting = show
        return
      case 'http2.window_update.window_size_increment':
        if (this.#stream === '0') this.#windowUpdate ??= show
        return
      case 'http2.exclusive':
        this.#exclusive = show === '1' || show === 'True' ? '1' : '0'
        return
      case 'http2.stream_dependency':
        this.#dependency = show
        return
      case 'http2.headers.weight':
        if (this.#type === PRIORITY)
          this.#priorities.push(`${this.#stream}:${this.#exclusive}:${this.#dependency}:${Number(show) + 1}`)
    }
  }
}

const FIELD = /<field name="(tcp\.srcport|http2\.[a-z_.]+)"[^>]*? show="([^"]*)"(?: value="([^"]*)")?/g
const HEADERS = '1'
const PRIORITY = '2'
const SETTINGS = '4'
