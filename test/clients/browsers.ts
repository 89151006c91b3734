import { spawn, spawnSync } from 'node:child_process'
import { createInterface } from 'node:readline'
import { chromium } from 'playwright-core'
import type { Test } from 'tap'
import { endWith, plainEnvironment, temporaryFolder } from '../e2e/programs.ts'
import type { Answer, Ask } from './ask.ts'
import { sendByFetch } from './fetch-client.ts'

/** Runs a script in a page of the gateway. */
type Evaluate = (script: string) => Promise<unknown>

export async function chromiumPage(t: Test, url: string): Promise<Evaluate> {
  const executablePath = spawnSync('sh', ['-c', 'command -v chromium'], { encoding: 'utf8' }).stdout.trim()
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] })
  t.teardown(() => browser.close())
  const page = await browser.newPage({ ignoreHTTPSErrors: true })
  await page.goto(url)
  return (script) => page.evaluate(script)
}

/** Debian's Firefox, over WebDriver BiDi: Playwright operates only a Firefox of its own. */
export async function firefoxPage(t: Test, url: string): Promise<Evaluate> {
  const folder = temporaryFolder(t)
  const argv = ['--headless', '--no-remote', '--profile', folder, '--remote-debugging-port=0']
  const child = spawn('firefox-esr', argv, {
    env: plainEnvironment(folder),
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  endWith(t, child)
  let address = ''
  for await (const line of createInterface(child.stderr)) {
    address = /listening on (ws:\S+)/.exec(line)?.[1] ?? ''
    if (address !== '') break
  }
  child.stderr.resume()
  const socket = new WebSocket(`${address}/session`)
  t.teardown(() => socket.close())
  await new Promise((resolve, reject) => {
    socket.onopen = resolve
    socket.onerror = reject
  })
  let last = 0
  // biome-ignore lint/suspicious/noExplicitAny: what Firefox answers
  const command = (method: string, params: object): Promise<any> =>
    new Promise((resolve, reject) => {
      const id = ++last
      socket.addEventListener('message', function heard({ data }) {
        const answer = JSON.parse(String(data))
        if (answer.id !== id) return
        socket.removeEventListener('message', heard)
        if (answer.type === 'success') resolve(answer.result)
        else reject(new Error(`${method}: ${answer.message}`))
      })
      socket.send(JSON.stringify({ id, method, params }))
    })
  await command('session.new', { capabilities: { alwaysMatch: { acceptInsecureCerts: true } } })
  const { contexts } = await command('browsingContext.getTree', {})
  const { context } = contexts[0]
  await command('browsingContext.navigate', { context, url, wait: 'complete' })
  return async (expression) => {
    const told = await command('script.evaluate', { expression, target: { context }, awaitPromise: true })
    return told.result?.value
  }
}

export async function pageSends(evaluate: Evaluate, asks: readonly Ask[]): Promise<readonly Answer[]> {
  const cookies = asks.flatMap(({ headers }) => headers.filter(([name]) => name === 'cookie'))
  const set = cookies.map(([, value]) => `document.cookie = ${JSON.stringify(value)};`).join('')
  // A result of Firefox has a type at each of its parts; text is text.
  const script = `${set}(${sendByFetch})('', ${JSON.stringify(asks)}, fetch).then(JSON.stringify)`
  return JSON.parse((await evaluate(script)) as string)
}
