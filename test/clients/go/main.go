// Go's net/http as a client. Reads a list of requests from each line, and writes a line with the answers.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

type field [2]string

type ask struct {
	Method, Path      string
	Headers, Trailers []field
	Upload            *int
	IsStreamed, IsCut bool
	Ack               *string
}

type answer struct {
	Status   int     `json:"status"`
	Headers  []field `json:"headers"`
	Trailers []field `json:"trailers"`
	Length   int     `json:"length"`
	Sha256   string  `json:"sha256"`
	Error    string  `json:"error"`
}

var base = os.Args[1]
var client http.Client

func main() {
	ca, err := os.ReadFile(os.Args[2])
	if err != nil {
		panic(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	client.Transport = &http.Transport{
		TLSClientConfig:       &tls.Config{RootCAs: roots},
		ForceAttemptHTTP2:     true,
		DisableCompression:    true,
		ExpectContinueTimeout: 30 * time.Second,
	}
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var asks []ask
		if in.Decode(&asks) != nil {
			return
		}
		answers := make([]answer, len(asks))
		var all sync.WaitGroup
		for i := range asks {
			all.Add(1)
			go func(i int) {
				defer all.Done()
				answers[i] = send(asks[i])
			}(i)
		}
		all.Wait()
		out.Encode(answers)
	}
}

func send(one ask) (seen answer) {
	seen.Headers, seen.Trailers = []field{}, []field{}
	fail := func(err error) answer {
		seen.Error = err.Error()
		return seen
	}
	within, stop := context.WithCancel(context.Background())
	defer stop()
	var body io.Reader
	if one.Upload != nil {
		body = bytes.NewReader(pattern(*one.Upload))
		if one.IsStreamed {
			body = io.MultiReader(body)
		}
	}
	request, err := http.NewRequestWithContext(within, one.Method, base+one.Path, body)
	if err != nil {
		return fail(err)
	}
	for _, pair := range one.Headers {
		request.Header.Add(pair[0], pair[1])
	}
	for _, pair := range one.Trailers {
		request.Trailer = http.Header{}
		request.Trailer.Add(pair[0], pair[1])
	}
	response, err := client.Do(request)
	if err != nil {
		return fail(err)
	}
	defer response.Body.Close()
	seen.Status = response.StatusCode
	seen.Headers = fields(response.Header)
	hash := sha256.New()
	piece := make([]byte, 65536)
	for {
		length, err := response.Body.Read(piece)
		hash.Write(piece[:length])
		seen.Length += length
		if err == io.EOF || (one.IsCut && length > 0) {
			break
		} else if err != nil {
			return fail(err)
		}
		if one.Ack != nil && length > 0 {
			ack, err := client.Get(base + *one.Ack)
			if err != nil {
				return fail(err)
			}
			ack.Body.Close()
		}
	}
	seen.Trailers = fields(response.Trailer)
	seen.Sha256 = hex.EncodeToString(hash.Sum(nil))
	return seen
}

func fields(header http.Header) []field {
	found := []field{}
	for name, values := range header {
		for _, value := range values {
			found = append(found, field{strings.ToLower(name), value})
		}
	}
	return found
}

func pattern(length int) []byte {
	whole := make([]byte, length)
	for i := range whole {
		whole[i] = byte(i % 251)
	}
	return whole
}
