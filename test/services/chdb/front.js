// ClickHouse's engine in this process, behind its HTTP interface as far as the client uses it. Usage: node front.js FOLDER [PORT]
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { Session } from 'chdb'
import { createGunzip, createZstdDecompress } from 'node:zlib'

const [folder, port = '0'] = process.argv.slice(2)
const session = new Session(folder)
session.query('CREATE DATABASE IF NOT EXISTS gatehouse ENGINE = Atomic')

const server = createServer(async (request, response) => {
  const asked = new URL(request.url, 'http://localhost').searchParams
  try {
    const body = await bodyOf(request)
    const parts = /multipart\/form-data; boundary=(.+)$/.exec(request.headers['content-type'] ?? '')
    if (parts !== null) for (const [name, value] of partsIn(body.toString(), parts[1])) asked.set(name, value)
    const query = asked.get('query')
    response.setHeader('X-ClickHouse-Format', 'JSONCompactEachRow')
    if (query !== null && parts === null && INSERT.test(query)) {
      // As a part of the text, rows take the engine twice as long.
      const rows = join(folder, 'inserted')
      writeFileSync(rows, body)
      response.end(run(query.replace(INSERT, `$1 FROM INFILE '${rows}' $2`), asked))
      return
    }
    const text = query === null || parts !== null ? (query ?? body.toString()) : `${query}\n${body}`
    response.end(run(text, asked))
  } catch (error) {
    const code = /Code: (\d+)/.exec(error.message)?.[1] ?? '1002'
    response.writeHead(500, { 'X-ClickHouse-Exception-Code': code })
    response.end(`Code: ${code}. DB::Exception: ${error.message}`)
  }
})
server.listen(Number(port), '127.0.0.1', () => process.stdout.write(`${server.address().port}\n`))
// Ends with the program that started it.
process.stdin.resume().on('end', () => process.exit())

function run(text, asked) {
  const database = asked.get('database') ?? 'default'
  session.query(`USE ${database}`)
  for (const [name, value] of asked) {
    if (name.startsWith('param_')) session.query(`SET ${name} = ${quoted(value)}`)
    if (SETTINGS.has(name)) session.query(`SET ${name} = ${quoted(value)}`)
  }
  const result = session.query(text, 'JSONCompactEachRow')
  session.query("SET insert_deduplication_token = ''")
  return result
}

function quoted(text) {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
}

async function bodyOf(request) {
  const coding = request.headers['content-encoding']
  const bytes =
    coding === 'zstd'
      ? request.pipe(createZstdDecompress())
      : coding === 'gzip'
        ? request.pipe(createGunzip())
        : request
  const chunks = []
  for await (const chunk of bytes) chunks.push(chunk)
  return Buffer.concat(chunks)
}

function* partsIn(body, boundary) {
  for (const part of body.split(`--${boundary}`)) {
    const [, name, value] = /name="([^"]+)".*?\r\n\r\n(.*)\r\n$/s.exec(part) ?? []
    if (name !== undefined) yield [name, value]
  }
}

const INSERT = /^(INSERT INTO .+) (FORMAT \w+)$/
const SETTINGS = new Set(['insert_deduplication_token', 'output_format_json_quote_64bit_integers'])
