// The HPACK of golang.org/x/net, a line at a time. Strings are in hex, each followed by a blank.
//
//	new         begins a connection
//	decode HEX  a block: its list, or "malformed"
//	allow N     limits the table of the encoder
//	encode LIST its block
package main

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/net/http2/hpack"
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	var block bytes.Buffer
	encoder, decoder := hpack.NewEncoder(&block), hpack.NewDecoder(4096, nil)
	for lines.Scan() {
		command, rest, _ := strings.Cut(lines.Text(), " ")
		switch command {
		case "new":
			block.Reset()
			encoder, decoder = hpack.NewEncoder(&block), hpack.NewDecoder(4096, nil)
		case "allow":
			size, _ := strconv.Atoi(rest)
			encoder.SetMaxDynamicTableSizeLimit(uint32(size))
			encoder.SetMaxDynamicTableSize(uint32(size))
		case "decode":
			fmt.Fprintln(out, decoded(decoder, rest))
		case "encode":
			block.Reset()
			list := strings.Split(rest, " ")
			for i := 0; i+1 < len(list); i += 2 {
				encoder.WriteField(hpack.HeaderField{Name: text(list[i]), Value: text(list[i+1])})
			}
			fmt.Fprintln(out, hex.EncodeToString(block.Bytes()))
		}
	}
}

func decoded(decoder *hpack.Decoder, block string) string {
	fields, err := decoder.DecodeFull([]byte(text(block)))
	if err != nil {
		return "malformed"
	}
	var list strings.Builder
	for _, field := range fields {
		fmt.Fprintf(&list, "%x %x ", field.Name, field.Value)
	}
	return list.String()
}

func text(encoded string) string {
	bytes, err := hex.DecodeString(encoded)
	if err != nil {
		panic(err)
	}
	return string(bytes)
}
