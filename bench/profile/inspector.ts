/** A process that was started with `--inspect`, asked by the DevTools protocol. */
export class Inspector {
  readonly #socket: WebSocket
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>()
  #lastId = 0

  static async connect(port: number): Promise<Inspector> {
    const list = await (await fetch(`http://127.0.0.1:${port}/json/list`)).json()
    const [{ webSocketDebuggerUrl }] = list as [{ webSocketDebuggerUrl: string }]
    const socket = new WebSocket(webSocketDebuggerUrl)
    await new Promise((resolve, reject) => {
      socket.addEventListener('open', resolve)
      socket.addEventListener('error', reject)
    })
    const inspector = new Inspector(socket)
    await inspector.ask('Profiler.enable')
    return inspector
  }

  private constructor(socket: WebSocket) {
    this.#socket = socket
    socket.addEventListener('message', ({ data }) => {
      const { id, result } = JSON.parse(String(data)) as { id?: number; result?: unknown }
      if (id !== undefined) this.#waiting.get(id)?.resolve(result)
    })
  }

  ask(method: string): Promise<unknown> {
    const answer = Promise.withResolvers<unknown>()
    const id = ++this.#lastId
    this.#waiting.set(id, answer)
    this.#socket.send(JSON.stringify({ id, method }))
    return answer.promise
  }

  close(): void {
    this.#socket.close()
  }
}
