import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { globSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { type Test, test } from 'tap'
import { curl } from './curl.ts'
import { startGatehouse } from './gatehouse.ts'
import { freePort } from './ports.ts'
import { exampleWith, GUIDE } from './manual/examples.ts'
import { ARE_REQUIRED, endWith, missing, plainEnvironment, run, temporaryFolder } from './programs.ts'

const PAGE = `${GUIDE}/what-the-app-sees.md`

/** Where Debian has what Java runs with, and the Python that its packages are for. */
const JARS = '/usr/share/java/*'
const PYTHON = '/usr/bin/python3'

/** The examples of the page, each started as an app: resolves with its URL. */
const APPS: readonly (readonly [
  name: string,
  isMissing: () => string | false,
  start: (t: Test) => Promise<string>,
])[] = [
  ['Express', () => false, startExpress],
  ['Django', withoutDjango, startDjango],
  ['Spring', () => missing('javac') || missingJars(), startSpring],
  ['nginx', () => missing('nginx'), startNginx],
]

for (const [name, isMissing, start] of APPS)
  test(`${name}: the app of the manual uses our headers`, {
    skip: !ARE_REQUIRED && isMissing(),
  }, async (t) => {
    const gate = await startGatehouse(t, { upstream: await start(t) })
    const folder = temporaryFolder(t)
    const ask = async (...argv: readonly string[]) => {
      const { heads, body } = await curl(folder, ['--cacert', gate.caFile, ...argv, `${gate.url}/price`])
      const { status, headers } = heads[0]!
      const varies = headers.filter(([name]) => name.toLowerCase() === 'vary').map(([, value]) => value)
      assert.match(varies.join(', '), /X-Agent-Conflict/i)
      return `${status} ${String(body).trim()}`
    }
    const PAGE = '200 <h1>12.50 EUR</h1>'
    const agent = await ask('-A', 'GPTBot/1.2')
    assert.match(agent, /^200 \{/)
    assert.deepEqual(JSON.parse(agent.slice(4)), { price: 12.5, currency: 'EUR' })
    assert.equal(await ask(), PAGE)
    // Only the gate says who is an agent.
    assert.equal(await ask('-H', 'X-Agent-Verdict: agent'), PAGE)
    assert.equal(await ask('-H', 'X-Agent-Conflict: x'), PAGE)
    const lie = ['sig1=("@authority");created=1;expires=2;keyid="x";tag="web-bot-auth"', 'sig1=:AAAA:']
    assert.match(
      await ask('-A', 'GPTBot/1.2', '-H', `Signature-Input: ${lie[0]}`, '-H', `Signature: ${lie[1]}`),
      /^403/,
    )
  })

async function startExpress(t: Test): Promise<string> {
  const folder = temporaryFolder(t)
  const port = await freePort()
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'))
  writeFileSync(
    join(folder, 'app.mjs'),
    exampleWith(PAGE, '// app.mjs').replace('listen(3000', `listen(${port}`),
  )
  start(t, folder, process.execPath, ['app.mjs'])
  return listening(port)
}

async function startDjango(t: Test): Promise<string> {
  const folder = temporaryFolder(t)
  const port = await freePort()
  writeFileSync(join(folder, 'agents.py'), exampleWith(PAGE, '# agents.py'))
  writeFileSync(join(folder, 'app.py'), DJANGO_APP)
  start(t, folder, PYTHON, ['app.py', String(port)])
  return listening(port)
}

async function startSpring(t: Test): Promise<string> {
  const folder = temporaryFolder(t)
  const port = await freePort()
  writeFileSync(join(folder, 'Prices.java'), exampleWith(PAGE, '// Prices.java'))
  writeFileSync(join(folder, 'Main.java'), SPRING_MAIN)
  const sources = ['Prices.java', 'Main.java'].map((name) => join(folder, name))
  const built = await run('javac', ['-cp', JARS, '-d', folder, ...sources], { env: plainEnvironment(folder) })
  assert.equal(built.status, 0, built.stderr)
  start(t, folder, 'java', ['-cp', `${JARS}:${folder}`, 'Main', String(port)])
  return listening(port)
}

async function startNginx(t: Test): Promise<string> {
  const folder = temporaryFolder(t)
  const port = await freePort()
  const http = exampleWith(PAGE, 'map $http_x_agent_verdict')
    .replace('127.0.0.1:3000', `127.0.0.1:${port}`)
    .replaceAll('/srv/www', folder)
    .replaceAll('/var/log/nginx', folder)
  writeFileSync(join(folder, 'nginx.conf'), `${NGINX_HEAD}http {\n${http}}\n`)
  for (const [pages, price] of [
    ['people', '<h1>12.50 EUR</h1>'],
    ['agents', '{"price": 12.5, "currency": "EUR"}'],
  ] as const) {
    mkdirSync(join(folder, pages))
    writeFileSync(join(folder, pages, 'price'), price)
  }
  start(t, folder, 'nginx', ['-p', folder, '-e', 'stderr', '-c', join(folder, 'nginx.conf')])
  return listening(port)
}

function start(t: Test, folder: string, program: string, argv: readonly string[]): void {
  const child = spawn(program, argv, { cwd: folder, env: plainEnvironment(folder), stdio: 'ignore' })
  endWith(t, child)
}

async function listening(port: number): Promise<string> {
  const url = `http://127.0.0.1:${port}`
  for (const untilMs = Date.now() + 30_000; Date.now() < untilMs; ) {
    const answer = await fetch(`${url}/price`).catch(() => null)
    if (answer?.ok) return url
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  return assert.fail('the app does not answer')
}

function missingJars(): string | false {
  return globSync(JARS).some((file) => file.includes('spring'))
    ? false
    : 'Spring is not installed: apt-get install libspring-web-servlet-java libjetty9-java'
}

function withoutDjango(): string | false {
  const { status } = spawnSync(PYTHON, ['-c', 'import django'], { stdio: 'ignore' })
  return status === 0 ? false : 'Django is not installed: apt-get install python3-django'
}

const DJANGO_APP = `
import sys
from wsgiref.simple_server import make_server
from django.conf import settings
settings.configure(ROOT_URLCONF='app', ALLOWED_HOSTS=['*'], MIDDLEWARE=['agents.AgentMiddleware'], SECRET_KEY='x')
import django
django.setup()
from django.core.wsgi import get_wsgi_application
from django.urls import path
import agents
urlpatterns = [path('price', agents.price)]
if __name__ == '__main__':
    sys.modules['app'] = sys.modules['__main__']
    make_server('127.0.0.1', int(sys.argv[1]), get_wsgi_application()).serve_forever()
`

/** Without @Configuration classes: those of Debian's Spring want another bytecode library than it has. */
const SPRING_MAIN = `
import org.eclipse.jetty.server.*;
import org.eclipse.jetty.servlet.*;
import org.springframework.web.context.support.AnnotationConfigWebApplicationContext;
import org.springframework.web.servlet.DispatcherServlet;
import org.springframework.web.servlet.mvc.method.annotation.*;

public class Main {
  public static void main(String[] given) throws Exception {
    Server server = new Server(new java.net.InetSocketAddress("127.0.0.1", Integer.parseInt(given[0])));
    ServletContextHandler handler = new ServletContextHandler();
    AnnotationConfigWebApplicationContext context = new AnnotationConfigWebApplicationContext();
    context.register(RequestMappingHandlerMapping.class, RequestMappingHandlerAdapter.class, Prices.class);
    handler.addServlet(new ServletHolder(new DispatcherServlet(context)), "/");
    server.setHandler(handler);
    server.start();
    server.join();
  }
}
`

const NGINX_HEAD = `
daemon off;
master_process off;
pid nginx.pid;
events {}
`
