package device
import ("testing";"time";"fmt";"os";"strconv";"github.com/bmoe/bmoe/planner/config";"github.com/bmoe/bmoe/engine/internal/llama")
func TestZZ(t *testing.T){
 if os.Getenv("ZZ")=="" {t.Skip()}
 mb,_:=strconv.Atoi(os.Getenv("ZZ"))
 s:=time.Now(); lap:=func(n string){fmt.Printf("%s %.1fms  ",n,time.Since(s).Seconds()*1e3); s=time.Now()}
 List(); lap("init")
 c:=config.Default()
 Project([]string{"/tmp/p1.gguf"},c,[]int64{512,2048,4096}); lap("project3")
 sp:=Spec{Shape:Shape{Type:2,Cols:512,Rows:512,Experts:32,Used:4,Slice:147456},Threads:2,Sweep:int64(mb)<<20}
 m,_:=llama.NewMatmul("CPU",sp.Shape.matmul(sp.experts()),2); lap("new")
 why:=map[string]string{}
 n,w:=pair(t.Context(),m,sp,why,"",reference); lap("pair")
 timeRepack(m); lap("repack")
 n2,w2:=pair(t.Context(),m,sp,why,"",reference); lap("pair2")
 perNode("CPU",2); lap("pernode")
 fmt.Println(n.BytesPerS/1e9,w.BytesPerS/1e9,n2.BytesPerS/1e9,w2.BytesPerS/1e9)
}
