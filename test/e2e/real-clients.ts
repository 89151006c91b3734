/** A program that asks for pages over TLS as its users have it do. */
export interface RealClient {
  readonly name: string
  readonly program: string
  /** It may be missing everywhere. */
  /** It asks for the page at `url` and for pages below it. */
  argv(place: ClientPlace): readonly string[]
  /** What is typed into it. */
  input?(path: string): string
}

export interface ClientPlace {
  readonly url: string
  readonly port: number
  readonly path: string
  /** For what it keeps. */
  readonly folder: string
}

/** The pages of a client: their path tells the server which client asks. */
export function pathOf(name: string): string {
  return `/${name.replaceAll(/\W+/g, '-')}`
}

export function isOf(name: string, path: string): boolean {
  const own = pathOf(name)
  return path === own || path.startsWith(`${own}/`)
}

export const CHROMIUM: readonly string[] = [
  ...['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'],
  ...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
  ...['--disable-dev-shm-usage', '--ignore-certificate-errors', '--dump-dom'],
]

/** On a connection each, the second of which goes on with the session of the first. */
const NODE_HTTPS = `
  const { Agent, get } = require('https')
  const [url, maxVersion] = process.argv.slice(1)
  const options = { agent: new Agent({ maxVersion }), headers: { Cookie: 'b=2; a=1', 'accept-language': 'de' } }
  get(url, options, (response) => response.resume().on('close', () =>
    get(url + '/2', options, (second) => second.resume())))`
const NODE_FETCH = `
  fetch(process.argv[1], { method: 'POST', body: 'x'.repeat(20000) }).then((response) => response.text())
    .then(() => fetch(process.argv[1] + '/2')).then((response) => response.text())`
const NODE_HTTP2 = `
  const session = require('http2').connect(process.argv[1])
  const { pathname } = new URL(process.argv[1])
  let open = 2
  for (const path of [pathname, pathname + '/2'])
    session.request({ ':path': path, cookie: ['a=1', 'b=2'] }).resume().on('end', () => --open || session.close())`
const PYTHON_CLIENT = `
import http.client, ssl, sys
connection = http.client.HTTPSConnection('localhost', int(sys.argv[1]), context=ssl._create_unverified_context())
for _ in range(2):
    connection.request('GET', sys.argv[2], headers={'Referer': 'https://a/', 'Accept-Language': 'en-GB,en'})
    connection.getresponse().read()`
const PYTHON_URLLIB = `
import ssl, sys, urllib.request
context = ssl._create_unverified_context()
context.maximum_version = ssl.TLSVersion.TLSv1_2
urllib.request.urlopen(sys.argv[1], context=context).read()
urllib.request.urlopen(urllib.request.Request(sys.argv[1] + '/2', method='DELETE'), context=context).read()`

const typed = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`

const openssl = (name: string, ...more: readonly string[]): RealClient => ({
  name: `openssl s_client ${name}`,
  program: 'openssl',
  argv: ({ port }) => ['s_client', '-quiet', ...more, '-connect', `localhost:${port}`],
  input: typed,
})

/** Of every TLS that is in wide use: OpenSSL, BoringSSL, GnuTLS (wget, git) and, where there is a Java, its own. */
export const REAL_CLIENTS: readonly RealClient[] = [
  ...['TLSv1.3', 'TLSv1.2'].map((version) => ({
    name: `node https with ${version}`,
    program: process.execPath,
    argv: ({ url }: ClientPlace) => ['-e', NODE_HTTPS, url, version],
  })),
  { name: 'node fetch', program: process.execPath, argv: ({ url }) => ['-e', NODE_FETCH, url] },
  { name: 'node http2', program: process.execPath, argv: ({ url }) => ['-e', NODE_HTTP2, url] },
  {
    name: 'curl over HTTP 1.1',
    program: 'curl',
    argv: ({ url }) => ['-sk', '--http1.1', '-b', 'x=1; y=2', '-e', 'https://a/', url, `${url}/2`],
  },
  {
    name: 'curl over HTTP 1.0',
    program: 'curl',
    argv: ({ url }) => [
      ...['-sk', '--http1.0', '-b', 'zeta=1; Alpha=2; =3; alpha=', '-A', ''],
      ...[
        '-H',
        'ACCEPT-LANGUAGE:  en;q=0.5 , de',
        '-H',
        'X-Empty;',
        '-H',
        'x_under.score: 1',
        '-X',
        'PROPFIND',
      ],
      ...[url, `${url}/2`],
    ],
  },
  {
    name: 'curl over HTTP 2',
    program: 'curl',
    argv: ({ url }) => ['-sk', '--http2', '-d', 'a=b', '-b', 'x=1; y=2', url, `${url}/2`],
  },
  {
    name: 'curl over TLS 1.2',
    program: 'curl',
    argv: ({ url }) => ['-sk', '--tlsv1.2', '--tls-max', '1.2', '--http2', url],
  },
  openssl('with TLS 1.2', '-tls1_2'),
  openssl('with TLS 1.3', '-tls1_3'),
  openssl('that is asked again', '-tls1_3', '-groups', 'P-521:P-256:X25519'),
  {
    name: 'python3 http client',
    program: 'python3',
    argv: ({ port, path }) => ['-c', PYTHON_CLIENT, `${port}`, path],
  },
  { name: 'python3 urllib', program: 'python3', argv: ({ url }) => ['-c', PYTHON_URLLIB, url] },
  {
    name: 'wget',
    program: 'wget',
    argv: ({ url }) => ['--no-check-certificate', '-qO-', url, `${url}/2`],
  },
  {
    name: 'git',
    program: 'git',
    argv: ({ url }) => ['-c', 'http.sslVerify=false', 'ls-remote', url],
  },
  {
    name: 'nghttp',
    program: 'nghttp',
    argv: ({ url }) => ['-n', '-H', 'cookie: a=1', url, `${url}/2`, `${url}/3`],
  },
  {
    name: 'h2load',
    program: 'h2load',
    argv: ({ url }) => ['-n', '4', '-c', '1', '-m', '4', '-w', '20', url, `${url}/2`],
  },
  {
    name: 'socat',
    program: 'socat',
    argv: ({ port }) => ['-,ignoreeof', `OPENSSL:localhost:${port},verify=0`],
    input: typed,
  },
  {
    name: 'java',
    program: 'java',
    argv: ({ url, folder }) => [`${folder}/Client.java`, url],
  },
  {
    name: 'chromium',
    program: 'chromium',
    argv: ({ url, folder }) => [...CHROMIUM, `--user-data-dir=${folder}/profile`, url],
  },
]

/** The source of the Java client, for `Client.java` in the client's folder. */
export const JAVA_CLIENT = `
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.security.cert.X509Certificate;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManager;
import javax.net.ssl.X509ExtendedTrustManager;

class Client {
  public static void main(String[] argv) throws Exception {
    var context = SSLContext.getInstance("TLS");
    context.init(null, new TrustManager[] { new Trusting() }, null);
    var client = HttpClient.newBuilder().sslContext(context).build();
    for (var url : new String[] { argv[0], argv[0] + "/2" })
      client.send(HttpRequest.newBuilder(URI.create(url)).build(), BodyHandlers.ofString());
    System.exit(0);
  }

  static class Trusting extends X509ExtendedTrustManager {
    public void checkClientTrusted(X509Certificate[] chain, String type) {}
    public void checkClientTrusted(X509Certificate[] chain, String type, java.net.Socket socket) {}
    public void checkClientTrusted(X509Certificate[] chain, String type, javax.net.ssl.SSLEngine engine) {}
    public void checkServerTrusted(X509Certificate[] chain, String type) {}
    public void checkServerTrusted(X509Certificate[] chain, String type, java.net.Socket socket) {}
    public void checkServerTrusted(X509Certificate[] chain, String type, javax.net.ssl.SSLEngine engine) {}
    public X509Certificate[] getAcceptedIssuers() { return new X509Certificate[0]; }
  }
}
`
