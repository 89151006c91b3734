/** The first bytes of a client that speaks HTTP/2 (RFC 9113 §3.4). */
export const HTTP2_PREFACE: Buffer = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1')
