/** The headers of a page request of Chrome, in their order: names and values by turns. */
export function browserHeaders(host: string): readonly string[] {
  return [
    ['Host', host],
    ['Connection', 'keep-alive'],
    ['sec-ch-ua', '"Chromium";v="156", "Not?A_Brand";v="24"'],
    ['sec-ch-ua-mobile', '?0'],
    ['sec-ch-ua-platform', '"Linux"'],
    ['Upgrade-Insecure-Requests', '1'],
    ['User-Agent', 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0'],
    ['Accept', 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8'],
    ['Sec-Fetch-Site', 'none'],
    ['Sec-Fetch-Mode', 'navigate'],
    ['Sec-Fetch-User', '?1'],
    ['Sec-Fetch-Dest', 'document'],
    ['Accept-Encoding', 'gzip, deflate, br, zstd'],
    ['Accept-Language', 'en-US,en;q=0.9'],
    ['Cookie', 'session=5f1e0c9ad2b7; _ga=GA1.2.1234567890.1700000000; theme=dark; consent=yes'],
  ].flat()
}
