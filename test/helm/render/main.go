// Renders a chart as helm does, for tests: helm itself is no package of Debian.
// render CHART < {"values": …, "release": …, "namespace": …, "cluster": {"Secret/NAME": …},
// "template": "…"} > {"templates/…": "…"}
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"sigs.k8s.io/yaml"
)

type asked struct {
	Values    map[string]interface{} `json:"values"`
	Release   string                 `json:"release"`
	Namespace string                 `json:"namespace"`
	// What lookup finds in the namespace.
	Cluster map[string]map[string]interface{} `json:"cluster"`
	// One more template, as another chart has it that depends on this one.
	Template string `json:"template"`
}

type files struct{ chart string }

func (f files) Get(name string) string {
	text, err := os.ReadFile(filepath.Join(f.chart, name))
	if err != nil {
		return ""
	}
	return string(text)
}

func main() {
	chart := os.Args[1]
	var what asked
	input, err := io.ReadAll(os.Stdin)
	fail(err)
	fail(json.Unmarshal(input, &what))
	values := read(filepath.Join(chart, "values.yaml"))
	about := read(filepath.Join(chart, "Chart.yaml"))
	context := map[string]interface{}{
		"Values": over(values, what.Values),
		"Chart": map[string]interface{}{
			"Name": about["name"], "Version": about["version"], "AppVersion": about["appVersion"],
		},
		"Release": map[string]interface{}{
			"Name": what.Release, "Namespace": what.Namespace, "Service": "Helm",
			"IsInstall": true, "IsUpgrade": false, "Revision": 1,
		},
		"Files": files{chart},
		"Capabilities": map[string]interface{}{
			"KubeVersion": map[string]interface{}{"Version": "v1.32.0", "Major": "1", "Minor": "32"},
		},
	}
	all := template.New("gatehouse").Option("missingkey=zero")
	all.Funcs(functions(all, what))
	names := []string{}
	folder := filepath.Join(chart, "templates")
	fail(filepath.Walk(folder, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		name, err := filepath.Rel(chart, path)
		fail(err)
		text, err := os.ReadFile(path)
		fail(err)
		_, err = all.New(name).Parse(string(text))
		fail(err)
		if !strings.HasPrefix(filepath.Base(name), "_") {
			names = append(names, name)
		}
		return nil
	}))
	if what.Template != "" {
		_, err := all.New("templates/other.yaml").Parse(what.Template)
		fail(err)
		names = append(names, "templates/other.yaml")
	}
	rendered := map[string]string{}
	for _, name := range names {
		var out bytes.Buffer
		fail(all.ExecuteTemplate(&out, name, context))
		// As helm does with missing values.
		rendered[name] = strings.ReplaceAll(out.String(), "<no value>", "")
	}
	fail(json.NewEncoder(os.Stdout).Encode(rendered))
}

func functions(all *template.Template, given asked) template.FuncMap {
	table := sprig.TxtFuncMap()
	delete(table, "env")
	delete(table, "expandenv")
	table["include"] = func(name string, data interface{}) (string, error) {
		var out bytes.Buffer
		err := all.ExecuteTemplate(&out, name, data)
		return out.String(), err
	}
	table["tpl"] = func(text string, data interface{}) (string, error) {
		one, err := all.Clone()
		if err != nil {
			return "", err
		}
		one, err = one.New("tpl").Parse(text)
		if err != nil {
			return "", err
		}
		var out bytes.Buffer
		err = one.Execute(&out, data)
		return out.String(), err
	}
	table["toYaml"] = func(value interface{}) string {
		text, err := yaml.Marshal(value)
		if err != nil {
			return ""
		}
		return strings.TrimSuffix(string(text), "\n")
	}
	table["fromYaml"] = func(text string) map[string]interface{} {
		value := map[string]interface{}{}
		if err := yaml.Unmarshal([]byte(text), &value); err != nil {
			value["Error"] = err.Error()
		}
		return value
	}
	table["required"] = func(why string, value interface{}) (interface{}, error) {
		if value == nil || value == "" {
			return value, fmt.Errorf("%s", why)
		}
		if object, isObject := value.(map[string]interface{}); isObject && len(object) == 0 {
			return value, fmt.Errorf("%s", why)
		}
		return value, nil
	}
	table["lookup"] = func(_, kind, namespace, name string) map[string]interface{} {
		if object, isThere := given.Cluster[kind+"/"+name]; isThere && namespace == given.Namespace {
			return object
		}
		return map[string]interface{}{}
	}
	return table
}

func over(below, above map[string]interface{}) map[string]interface{} {
	for name, value := range above {
		inner, isObject := value.(map[string]interface{})
		before, wasObject := below[name].(map[string]interface{})
		if isObject && wasObject {
			below[name] = over(before, inner)
		} else if value == nil {
			delete(below, name)
		} else {
			below[name] = value
		}
	}
	return below
}

func read(path string) map[string]interface{} {
	text, err := os.ReadFile(path)
	fail(err)
	value := map[string]interface{}{}
	fail(yaml.Unmarshal(text, &value))
	return value
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
