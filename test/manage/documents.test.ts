import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { test } from 'tap'
import { type OpenApiDocument, openApiDocument } from '../../src/manage/api/openapi.ts'
import { V1, VERSIONS } from '../../src/manage/api/operations.ts'
import { PROBLEMS } from '../../src/manage/http/refusal.ts'
import { TestManagement } from './management.ts'
import { GOLDENS, goldenText } from './openapi.ts'

test('a change of the API is a change of a file: npm run openapi', async () => {
  for (const [version, file] of GOLDENS) assert.equal(goldenText(version), readFileSync(file, 'utf8'))
})

test('Redocly has nothing to say about the documents', async () => {
  for (const [, file] of GOLDENS) {
    const lint = promisify(execFile)('redocly', ['lint', '--format', 'json', fileURLToPath(file)], {
      env: { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' },
    })
    const { totals, problems } = JSON.parse((await lint).stdout)
    assert.deepEqual([totals, problems], [{ errors: 0, warnings: 0, ignored: 0 }, []])
  }
})

for (const version of VERSIONS) {
  const { operations, prefix } = version
  const document = openApiDocument(version, 'https://gate.example')

  test(`${prefix}: the table of operations is one: names, paths and what is shown as an example`, async () => {
    assert.equal(new Set(operations.map(({ id }) => id)).size, operations.length)
    assert.equal(new Set(operations.map(({ method, path }) => `${method} ${path}`)).size, operations.length)
    for (const { id, method, path, params, body, ...rest } of operations) {
      const { answer, files, status, scopes, summary } = rest
      assert.match(id, /^[a-z][A-Za-z]+$/)
      assert.ok(scopes.length > 0 && summary !== '', id)
      assert.equal(answer === null && files === null, status === 204, `${id}: only 204 is without a body`)
      const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
      assert.deepEqual(Object.keys(params.shape), names, id)
      const documented = document.paths[path]![method.toLowerCase()]!
      const request = documented.requestBody?.content['application/json']
      if (body !== null)
        assert.deepEqual(body.safeParse(request?.example).error, undefined, `${id}: its body`)
      const shown = documented.responses[status]
      assert.ok(shown !== undefined && !('$ref' in shown))
      const example = shown.content?.['application/json']?.example
      if (answer !== null) assert.deepEqual(answer.safeParse(example).error, undefined, `${id}: its answer`)
      for (const parameter of documented.parameters ?? [])
        assert.notEqual(
          parameter.description ?? parameter.schema.description ?? parameter.in,
          'query',
          `${id}: ${parameter.name} says nothing`,
        )
    }
  })

  test(`${prefix}: every reference leads somewhere, and every code of a problem is said`, async () => {
    const text = JSON.stringify(document)
    for (const [, pointer] of text.matchAll(/"\$ref":"#\/([^"]+)"/g)) {
      const found = pointer!
        .split('/')
        .reduce<unknown>((at, part) => (at as Record<string, unknown>)?.[part], document)
      assert.notEqual(found, undefined, pointer)
    }
    const said = new Set(Object.keys(document.components.responses).flatMap((name) => name.split('.')))
    for (const code of said) assert.ok(code in PROBLEMS, code)
  })
}

test('the versions have the same operations, under the same names', async () => {
  for (const { operations } of VERSIONS)
    assert.deepEqual(
      operations.map(({ id, method, path, scopes, status }) => [id, method, path, scopes, status]),
      V1.operations.map(({ id, method, path, scopes, status }) => [id, method, path, scopes, status]),
    )
})

test('the document and the page are there without a key, and say where they are', async (t) => {
  const manage = await TestManagement.start(t)
  const nobody = { authorization: '' }
  for (const { prefix, isBeta } of VERSIONS) {
    const path = `${prefix}/openapi.json`
    const document = await manage.ask('GET', path, undefined, nobody)
    assert.equal(document.status, 200)
    assert.match(document.headers.get('content-type') ?? '', /^application\/openapi\+json/)
    assert.equal((document.body as OpenApiDocument).servers[0]?.url, `${manage.url}${prefix}`)
    assert.equal((document.body as OpenApiDocument).info.version.includes('beta'), isBeta)
    assert.equal(document.headers.get('cache-control'), 'no-cache')
    const tag = document.headers.get('etag')!
    const again = await manage.ask('GET', path, undefined, { ...nobody, 'if-none-match': tag })
    assert.equal(again.status, 304)
  }
  for (const path of ['/v1/openapi.json', '/v2/openapi.json', '/docs', '/docs/v2', '/docs/style.css']) {
    assert.equal((await manage.ask('POST', path, {}, nobody)).status, 405)
    assert.equal((await manage.ask('HEAD', path, undefined, nobody)).status, 200)
    assert.equal(
      (await manage.ask('GET', `${path}/`, undefined, nobody)).status,
      path.startsWith('/v') ? 401 : 404,
    )
  }
})

test('the page runs nothing, takes nothing from elsewhere, and shows what is asked for', async (t) => {
  const manage = await TestManagement.start(t)
  const pageAt = async (path: string) => {
    const response = await fetch(`${manage.url}${path}`)
    return { headers: response.headers, text: await response.text() }
  }
  const page = (query: string) => pageAt(`/docs${query}`)
  for (const [at, { prefix, operations }] of [
    ['/docs', VERSIONS[0]!],
    ['/docs/v2', VERSIONS[1]!],
  ] as const) {
    const whole = await pageAt(at)
    assert.match(whole.headers.get('content-security-policy') ?? '', /^default-src 'none'; style-src 'self';/)
    for (const { id, path } of operations) {
      assert.ok(whole.text.includes(`id="${id}"`), id)
      assert.ok(whole.text.includes(`<code>${path}</code>`), path)
    }
    assert.doesNotMatch(whole.text, /<script|<iframe|<img|\son\w+=|style=|javascript:/i)
    const targets = [...whole.text.matchAll(/(?:href|src|action)="([^"]*)"/g)].map(([, target]) => target!)
    assert.deepEqual(
      targets.filter((target) => !/^[#/](?!\/)/.test(target)),
      [],
    )
    assert.deepEqual(
      targets.filter((target) => target.startsWith('/')),
      ['/docs/style.css', `${prefix}/openapi.json`, at === '/docs' ? '/docs/v2' : '/docs', at, at],
    )
    assertBalanced(whole.text)
  }
  const some = await page('?q=revoke')
  assert.ok(some.text.includes('id="revokeKey"') && !some.text.includes('id="createKey"'))
  const none = await page('?q=%3Cscript%3Ealert(1)%3C/script%3E"')
  assert.ok(none.text.includes('No operation contains “&lt;script&gt;'))
  assertBalanced(none.text)
  assert.ok((await page(`?q=${'x'.repeat(5000)}`)).text.length < 5_000)
})

/** Every element that is opened is closed, in its order. */
function assertBalanced(html: string): void {
  const open: string[] = []
  for (const [, close, name] of html.matchAll(/<(\/?)([a-z][a-z0-9]*)[^>]*>/g)) {
    if (['meta', 'link', 'input'].includes(name!)) continue
    if (close === '') open.push(name!)
    else assert.equal(open.pop(), name)
  }
  assert.deepEqual(open, [])
}
