import { spawn } from 'node:child_process'
import { setTimeout as wait } from 'node:timers/promises'
import type { Test } from 'tap'
import { endWith, plainEnvironment, temporaryFolder } from './programs.ts'
import { CHROMIUM } from './real-clients.ts'

/** One page of a real Chromium, in which no script runs unless that is asked for, operated with the keyboard alone, as a blind person does. */
export class BrowserPage {
  readonly #socket: WebSocket
  readonly #session: string
  readonly #answers: Map<number, (answer: Answer) => void>
  #count = 1_000
  #isWhole = false
  /** What the browser complains of. */
  readonly complaints: readonly string[]

  static async start(t: Test, { hasScripts = false } = {}): Promise<BrowserPage> {
    const folder = temporaryFolder(t)
    const argv = CHROMIUM.filter((flag) => flag !== '--dump-dom' && flag !== '--ignore-certificate-errors')
    const more = [`--user-data-dir=${folder}/profile`, '--remote-debugging-port=0', 'about:blank']
    const child = spawn('chromium', [...argv, ...more], {
      env: plainEnvironment(folder),
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    endWith(t, child)
    const socket = await connected(child.stderr)
    t.teardown(() => socket.close())
    const answers = new Map<number, (answer: Answer) => void>()
    const complaints: string[] = []
    socket.onmessage = ({ data }) => {
      const message = JSON.parse(String(data)) as Answer
      if (message.id !== undefined) answers.get(message.id)?.(message)
      else if (message.method === 'Log.entryAdded') complaints.push(message.params.entry.text)
      else if (message.method === 'Page.frameStartedLoading') page.#isWhole = false
      else if (message.method === 'Page.loadEventFired') page.#isWhole = true
    }
    const ask = asking(socket, answers)
    const { targetInfos } = await ask(1, 'Target.getTargets', {})
    const { targetId } = targetInfos.find(({ type }: { type: string }) => type === 'page')
    const { sessionId } = await ask(2, 'Target.attachToTarget', { targetId, flatten: true })
    const page = new BrowserPage(socket, sessionId, answers, complaints)
    for (const domain of ['Page', 'Log', 'Accessibility']) await page.do(`${domain}.enable`)
    await page.do('Emulation.setScriptExecutionDisabled', { value: !hasScripts })
    return page
  }

  private constructor(
    socket: WebSocket,
    session: string,
    answers: Map<number, (answer: Answer) => void>,
    complaints: readonly string[],
  ) {
    this.#socket = socket
    this.#session = session
    this.#answers = answers
    this.complaints = complaints
  }

  // biome-ignore lint/suspicious/noExplicitAny: what Chromium answers
  do(method: string, params: object = {}): Promise<any> {
    return asking(this.#socket, this.#answers, this.#session)(this.#count++, method, params)
  }

  async open(url: string): Promise<void> {
    await this.do('Page.navigate', { url })
  }

  /** Resolves when a page is shown that is called so, and to what a reader would read. */
  titled(title: string): Promise<readonly Read[]> {
    return this.read((nodes) =>
      nodes.some(({ role, name }) => role === 'RootWebArea' && name.startsWith(title)),
    )
  }

  /** Resolves when a page is shown of which this is so, and to what a reader would read. */
  async read(isSo: (nodes: readonly Read[]) => boolean): Promise<readonly Read[]> {
    let nodes: readonly Read[] = []
    for (let time = 0; time < 200; time++) {
      nodes = await this.#read()
      if (this.#isWhole && isSo(nodes)) return nodes
      await wait(50)
    }
    throw new Error(`no such page: ${isSo}: ${JSON.stringify(nodes)}, ${this.complaints}`)
  }

  async type(text: string): Promise<void> {
    await this.do('Input.insertText', { text })
  }

  async press(key: 'Tab' | 'Enter' | ' '): Promise<void> {
    const code = { Tab: 9, Enter: 13, ' ': 32 }[key]
    const text = { Tab: '', Enter: '\r', ' ': ' ' }[key]
    const common = { key, windowsVirtualKeyCode: code, nativeVirtualKeyCode: code }
    await this.do('Input.dispatchKeyEvent', { type: 'keyDown', ...common, ...(text && { text }) })
    await this.do('Input.dispatchKeyEvent', { type: 'keyUp', ...common })
  }

  /** Goes there by the tabulator. */
  async tabTo(role: string, name: RegExp): Promise<void> {
    for (let time = 0; time < 20; time++) {
      const nodes = await this.#read()
      if (nodes.some((node) => node.isFocused && node.role === role && name.test(node.name))) return
      await this.press('Tab')
    }
    throw new Error(`nothing to tab to: ${role} ${name}`)
  }

  async #read(): Promise<readonly Read[]> {
    const { nodes } = await this.do('Accessibility.getFullAXTree')
    return (nodes as AxNode[])
      .filter(({ ignored }) => !ignored)
      .map(({ role, name, description, properties = [] }) => {
        const has = (wanted: string) =>
          properties.some((each) => each.name === wanted && each.value.value === true)
        const described = description?.value ?? ''
        return { role: role?.value ?? '', name: name?.value ?? '', described, isFocused: has('focused') }
      })
  }
}

/** What a reader reads of one thing. */
export interface Read {
  readonly role: string
  readonly name: string
  readonly described: string
  readonly isFocused: boolean
}

interface AxNode {
  readonly ignored: boolean
  readonly role?: { readonly value: string }
  readonly name?: { readonly value: string }
  readonly description?: { readonly value: string }
  readonly properties?: readonly { readonly name: string; readonly value: { readonly value: unknown } }[]
}

// biome-ignore lint/suspicious/noExplicitAny: what Chromium answers
type Answer = any

function asking(socket: WebSocket, answers: Map<number, (answer: Answer) => void>, sessionId?: string) {
  return (id: number, method: string, params: object): Promise<Answer> => {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>()
    answers.set(id, ({ result, error }) => {
      answers.delete(id)
      if (error === undefined) resolve(result)
      else reject(new Error(`${method}: ${error.message}`))
    })
    socket.send(JSON.stringify({ id, method, params, ...(sessionId !== undefined && { sessionId }) }))
    return promise
  }
}

async function connected(stderr: NodeJS.ReadableStream): Promise<WebSocket> {
  let said = ''
  for await (const chunk of stderr) {
    said += chunk
    const [, url] = /DevTools listening on (ws:\S+)/.exec(said) ?? []
    if (url === undefined) continue
    const socket = new WebSocket(url)
    await new Promise((resolve, reject) => {
      socket.onopen = resolve
      socket.onerror = reject
    })
    return socket
  }
  throw new Error(`Chromium does not say where it is: ${said}`)
}
