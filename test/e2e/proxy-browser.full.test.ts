import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { test } from 'tap'
import { type Asked, bodyOf, type Route, startApp } from './app.ts'
import { startGatehouse } from './gatehouse.ts'
import { plainEnvironment, run, skipped, temporaryFolder } from './programs.ts'
import { CHROMIUM } from './real-clients.ts'

const PAGE = `<!doctype html><meta charset=utf-8><title>A page</title><link rel=stylesheet href=/style.css>
<p id=style>plain</p><p id=script>no script</p><p id=image>no image</p><p id=fetch>no fetch</p>
<p id=upload>no upload</p><p id=socket>no socket</p><p id=events>no events</p>
<img id=pixel src=/pixel.gif><img src=/held.gif><script src=/script.js></script>`

/** Says in the page what has come of each thing, and when all is done has the picture come that the page waits for. */
const SCRIPT = `
  const say = (id, text) => { document.getElementById(id).textContent = text }
  const trying = (id, attempt) => attempt().then((text) => say(id, text), (error) => say(id, String(error)))
  const pixel = document.getElementById('pixel')
  say('script', 'ran')
  Promise.all([
    trying('image', () => pixel.decode().then(() => pixel.naturalWidth + ' by ' + pixel.naturalHeight)),
    trying('fetch', () => fetch('/data.json').then((response) => response.json()).then(({ text }) => text)),
    trying('upload', () =>
      fetch('/upload', { method: 'POST', body: new Uint8Array(300000), headers: { 'X-Custom': 'a' } })
        .then((response) => response.text())),
    trying('socket', () => new Promise((resolve, reject) => {
      const socket = new WebSocket(location.href.replace('http', 'ws') + 'socket')
      const heard = []
      socket.onopen = () => { for (let i = 0; i < 20; i++) socket.send('message ' + i) }
      socket.onmessage = ({ data }) => { if (heard.push(data) === 20) socket.close(1000) }
      socket.onerror = () => reject('the socket failed')
      socket.onclose = ({ code }) => resolve(heard.length + ' messages, the last ' + heard.at(-1) + ', ' + code)
    })),
    trying('events', () => new Promise((resolve) => {
      const source = new EventSource('/events')
      const heard = []
      source.onmessage = ({ data }) => {
        if (heard.push(data) < 3) return
        source.close()
        resolve(heard.join(', '))
      }
    })),
  ]).then(() => {
    say('style', getComputedStyle(document.body).color)
    return fetch('/done')
  })`
const GIF = Buffer.from('R0lGODlhAgABAIAAAP///wAAACwAAAAAAgABAAACAgQKADs=', 'base64')

const EXPECTED = {
  style: 'rgb(1, 2, 3)',
  script: 'ran',
  image: '2 by 1',
  fetch: 'grüße',
  upload: '300000 bytes',
  socket: '20 messages, the last message 19, 1000',
  events: 'one, two, three',
}

test('Chromium: a page with a script, pictures, fetch, a WebSocket and events, as without the proxy', {
  skip: skipped('chromium'),
}, async (t) => {
  const app = await startApp(t, routes())
  const gatehouse = await startGatehouse(t, { upstream: app.url })
  const visit = async (url: string): Promise<{ dom: Record<string, string>; asked: readonly Asked[] }> => {
    const folder = temporaryFolder(t)
    const argv = [...CHROMIUM, `--user-data-dir=${folder}/profile`, `${url}/`]
    const { stdout, stderr } = await run('chromium', argv, { env: plainEnvironment(folder) })
    assert.match(stdout, /<\/html>/, stderr)
    const said = stdout.matchAll(/<p id="(\w+)">(.*?)<\/p>/g)
    const dom = Object.fromEntries(
      [...said].map(([, id, text]) => [id, Buffer.from(text!, 'latin1').toString()]),
    )
    // It asks for an icon when it finds the time.
    return { dom, asked: app.asked.splice(0).filter(({ url }) => url !== '/favicon.ico') }
  }
  const direct = await visit(app.url)
  assert.deepEqual(direct.dom, EXPECTED)
  const proxied = await visit(gatehouse.url)
  assert.deepEqual(proxied.dom, EXPECTED)

  const paths = (asked: readonly Asked[]) =>
    asked.map(({ method, url, body }) => `${method} ${url} ${body}`).sort()
  assert.deepEqual(paths(proxied.asked), paths(direct.asked))
  const fingerprints = new Set(
    proxied.asked.map(({ rawHeaders }) => headerIn(rawHeaders, 'X-JA4-Fingerprint')),
  )
  assert.equal(fingerprints.size, 1)
  assert.match([...fingerprints][0]!, /^t13d\d{4}h2_/)
  for (const { rawHeaders } of proxied.asked)
    assert.match(headerIn(rawHeaders, 'X-HTTP2-Fingerprint')!, /\|m,a,s,p$/)
})

function routes(): Readonly<Record<string, Route>> {
  const { promise: done, resolve: finish } = repeating()
  const file =
    (type: string, content: string | Buffer): Route =>
    (_, response) => {
      response.setHeader('Content-Type', type)
      response.end(content)
    }
  return {
    '/': file('text/html', PAGE),
    '/style.css': file('text/css', 'body { color: rgb(1, 2, 3) }'),
    '/script.js': file('text/javascript', SCRIPT),
    '/pixel.gif': file('image/gif', GIF),
    '/data.json': file('application/json', '{"text": "grüße"}'),
    '/upload': async (request, response) => {
      let length = 0
      request.on('data', (bytes: Buffer) => {
        length += bytes.length
      })
      await bodyOf(request)
      response.end(`${length} bytes`)
    },
    '/events': (_, response) => {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' })
      for (const data of ['one', 'two', 'three']) response.write(`data: ${data}\n\n`)
    },
    '/held.gif': async (request, response) => {
      await done()
      return file('image/gif', GIF)(request, response)
    },
    '/done': (_, response) => {
      finish()
      response.end()
    },
    '/favicon.ico': (_, response) => {
      response.writeHead(404)
      response.end()
    },
  }
}

/** A promise for each visit. */
function repeating(): { promise(): Promise<void>; resolve(): void } {
  let current = Promise.withResolvers<void>()
  return {
    promise: () => current.promise,
    resolve: () => {
      current.resolve()
      current = Promise.withResolvers()
    },
  }
}

function headerIn(rawHeaders: readonly string[], name: string): string | undefined {
  return rawHeaders[rawHeaders.findIndex((found, i) => i % 2 === 0 && found === name) + 1]
}
